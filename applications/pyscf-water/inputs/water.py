"""Water by Hartree-Fock, MP2 and coupled clusters, with integrals and amplitudes on disk."""

import numpy as np
from pyscf import cc, gto, lib, scf, tools
from pyscf.ao2mo import outcore

water = gto.M(
    atom="O 0 0 0; H 0 0.757 0.587; H 0 -0.757 0.587",
    basis="cc-pvtz",
    verbose=4,
    output="water.log",
)
field = scf.RHF(water)
field.chkfile = "water.chk"
field.max_memory = 200
field.kernel()
outcore.full(water, field.mo_coeff, "integrals.h5", max_memory=40)
with lib.H5FileWrap("integrals.h5", "r") as file:
    print(np.linalg.norm(file["eri_mo"][:500]))
pairs = cc.CCSD(field).set(max_memory=150, max_cycle=8, verbose=4)
pairs.diis_file = "pairs.h5"
pairs.kernel()
pairs.dump_chk()
tools.cubegen.density(water, "density.cube", field.make_rdm1(), nx=60, ny=60, nz=60)
tools.molden.from_scf(field, "water.molden")
