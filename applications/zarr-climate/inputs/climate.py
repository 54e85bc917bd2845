"""Arrays in chunks: written step by step, a mean by Dask, another chunking of them."""

import dask
import dask.array
import numpy as np
import zarr

DAYS, NY, NX = 150, 180, 360
dask.config.set(scheduler="synchronous")
store = zarr.open_group("climate.zarr", mode="w")
data = store.create_array("t2m", shape=(DAYS, NY, NX), chunks=(5, 60, 90), dtype="f4")
rng = np.random.default_rng(1)
for first in range(0, DAYS, 5):
    data[first : first + 5] = rng.standard_normal((5, NY, NX), dtype="f4").cumsum(axis=2)
data.attrs["units"] = "K"
whole = dask.array.from_zarr("climate.zarr", component="t2m")
mean = whole.mean(axis=0)
mean.rechunk((60, 90)).to_zarr("mean.zarr", overwrite=True)
series = whole.rechunk((DAYS, 30, 30))
series.to_zarr("series.zarr", overwrite=True)
print(float(zarr.open_array("series.zarr")[:, 90, 180].mean()))
