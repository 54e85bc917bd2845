; A ring of a dielectric that a pulse excites. The field is written every 2 units of time, and one
; file has slices of it over time.
(set! geometry-lattice (make lattice (size 16 16 no-size)))
(set! geometry (list
  (make cylinder (center 0 0) (height infinity) (radius 5) (material (make dielectric (epsilon 9))))
  (make cylinder (center 0 0) (height infinity) (radius 4) (material air))))
(set! sources (list
  (make source (src (make gaussian-src (frequency 0.12) (fwidth 0.1)))
    (component Ez) (center 4.5 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 24)
(run-until 40
  (at-beginning output-epsilon)
  (at-every 2 output-efield-z)
  (to-appended "ez-time" (at-every 1 (in-volume (volume (center 0 0) (size 8 8)) output-efield-z)))
  (at-end output-hfield))
