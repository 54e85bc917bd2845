"""A molecule of water on a grid: a relaxation with restart files, wave functions, densities."""

from ase import Atoms
from ase.io import write
from ase.optimize import BFGS
from gpaw import GPAW, restart

water = Atoms("OHH", [(0, 0, 0), (0.8, 0.6, 0), (-0.8, 0.6, 0)])
water.center(vacuum=2.6)
water.calc = GPAW(
    mode="fd", h=0.22, xc="LDA", txt="water.txt", convergence={"density": 1e-3, "energy": 1e-3}
)
steps = BFGS(water, trajectory="water.traj", restart="water.pckl", logfile="water.log")
steps.attach(water.calc.write, 1, "check.gpw", "all")
steps.run(fmax=0.05, steps=4)
water.calc.write("water.gpw", mode="all")
write("density.cube", water, data=water.calc.get_all_electron_density(gridrefinement=2))
for band in range(4):
    write(f"wave{band}.cube", water, data=water.calc.get_pseudo_wave_function(band=band))
again, calculator = restart("water.gpw", txt=None)
print(again.get_potential_energy())
