% Waves on a membrane; its state is saved in each format of Octave, and read back once.
n = 240;
[x, y] = meshgrid (linspace (0, 1, n));
now = exp (-200 * ((x - 0.4) .^ 2 + (y - 0.5) .^ 2));
before = now;
file = fopen ("energy.txt", "w");
for dump = 1:8
  for step = 1:200
    around = zeros (n);
    around(2:end-1, 2:end-1) = now(1:end-2, 2:end-1) + now(3:end, 2:end-1) + now(2:end-1, 1:end-2) ...
      + now(2:end-1, 3:end) - 4 * now(2:end-1, 2:end-1);
    next = 2 * now - before + 0.2 * around;
    before = now;
    now = next;
  end
  fprintf (file, "%d %.12g\n", dump, sum (now(:) .^ 2));
  save ("-text", sprintf ("text_%02d.txt", dump), "now");
  save ("-binary", sprintf ("state_%02d.bin", dump), "now", "before");
  save ("-hdf5", "latest.h5", "now", "before");
  if mod (dump, 4) == 0
    save ("-zip", "-binary", sprintf ("packed_%02d.gz", dump), "now");
    dlmwrite (sprintf ("table_%02d.csv", dump), now(1:4:end, :), "precision", 8);
  end
end
fclose (file);
again = load ("text_08.txt");
printf ("%g\n", max (abs (again.now(:) - now(:))));
