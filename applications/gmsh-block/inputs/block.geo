// A block with a hole, meshed in three dimensions and written in several formats.
SetFactory("OpenCASCADE");
Box(1) = {0, 0, 0, 2, 1, 1};
Cylinder(2) = {1, 0.5, 0, 0, 0, 1, 0.25};
BooleanDifference(3) = { Volume{1}; Delete; }{ Volume{2}; Delete; };
Mesh.MeshSizeMax = 0.075;
Mesh 3;
Save "block.msh";
Save "block.vtk";
Save "block.inp";
Save "block.stl";
Save "block.unv";
