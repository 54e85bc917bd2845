# The mesh, the column of water and a folder for each rank.
set -e
blockMesh
setFields
decomposePar -force
