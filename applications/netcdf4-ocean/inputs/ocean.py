"""A drifting ocean: compressed, chunked daily fields in one file, monthly means in others."""

import numpy as np
from netCDF4 import Dataset

NY, NX, DAYS, MONTH = 300, 400, 72, 12
rng = np.random.default_rng(5)
y, x = np.mgrid[0:NY, 0:NX]


def created(name, compressed):
    file = Dataset(name, "w", format="NETCDF4")
    for dim, size in (("time", None), ("lat", NY), ("lon", NX)):
        file.createDimension(dim, size)
    file.createVariable("time", "f8", ("time",))[:] = []
    for field in ("sst", "ssh", "salt"):
        variable = file.createVariable(
            field,
            "f4",
            ("time", "lat", "lon"),
            zlib=compressed,
            complevel=4,
            chunksizes=(1, 100, 100) if compressed else None,
        )
        variable.units = "1"
    file.title = "ocean"
    return file


with created("daily.nc", True) as daily:
    total = {}
    for day in range(DAYS):
        for n, field in enumerate(("sst", "ssh", "salt")):
            wave = np.sin(0.05 * x + 0.1 * day + n) * np.cos(0.04 * y)
            data = (wave + 0.01 * rng.standard_normal(wave.shape)).astype("f4").round(3)
            daily[field][day] = data
            total[field] = total.get(field, 0) + data
        daily["time"][day] = day
        if day % 3 == 2:
            daily.sync()
        if day % MONTH == MONTH - 1:
            with created(f"mean.{day // MONTH:02}.nc", False) as mean:
                mean["time"][0] = day
                for field, data in total.items():
                    mean[field][0] = data / MONTH
            total = {}
with Dataset("daily.nc") as daily:
    print(float(daily["sst"][:, 150, 200].mean()), float(daily["salt"][DAYS - 1].max()))
