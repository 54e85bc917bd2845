#!/bin/sh
# A beam of 8 by 8 by 80 bricks, one end held, the other one loaded in ten steps.
awk 'BEGIN {
    X = 80; Y = 8; Z = 8
    print "*NODE, NSET=ALL"
    for (z = 0; z <= Z; z++) for (y = 0; y <= Y; y++) for (x = 0; x <= X; x++)
        printf "%d, %g, %g, %g\n", ++n, x / 10, y / 10, z / 10
    print "*ELEMENT, TYPE=C3D8, ELSET=BEAM"
    row = X + 1; plane = row * (Y + 1)
    for (z = 0; z < Z; z++) for (y = 0; y < Y; y++) for (x = 0; x < X; x++) {
        a = 1 + x + y * row + z * plane
        printf "%d, %d, %d, %d, %d, %d, %d, %d, %d\n", ++e, a, a + 1, a + 1 + row, a + row, a + plane, a + 1 + plane, a + 1 + row + plane, a + row + plane
    }
    print "*NSET, NSET=HELD"
    for (z = 0; z <= Z; z++) for (y = 0; y <= Y; y++) print 1 + y * row + z * plane ","
    print "*NSET, NSET=END"
    for (z = 0; z <= Z; z++) for (y = 0; y <= Y; y++) print row + y * row + z * plane ","
    print "*MATERIAL, NAME=STEEL\n*ELASTIC\n210000, 0.3\n*SOLID SECTION, ELSET=BEAM, MATERIAL=STEEL"
    print "*BOUNDARY\nHELD, 1, 3"
    for (step = 1; step <= 4; step++) {
        print "*STEP\n*STATIC\n*CLOAD\nEND, 3, " step
        print "*NODE FILE\nU\n*EL FILE\nS, E\n*NODE PRINT, NSET=END\nU\n*END STEP"
    }
}' > beam.inp
rm -f prepare.sh
