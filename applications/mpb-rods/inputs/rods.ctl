; Bands of a square lattice of rods; fields of some bands at each k point.
(set! num-bands 8)
(set! resolution 64)
(set! geometry-lattice (make lattice (size 1 1 no-size)))
(set! geometry (list
  (make cylinder (center 0 0 0) (radius 0.2) (height infinity) (material (make dielectric (epsilon 11.56))))))
(set! k-points (interpolate 2 (list (vector3 0 0 0) (vector3 0.5 0 0) (vector3 0.5 0.5 0) (vector3 0 0 0))))
(run-tm output-efield-z)
(run-te (output-at-kpoint (vector3 0.5 0 0) output-hfield-z output-dpwr))
