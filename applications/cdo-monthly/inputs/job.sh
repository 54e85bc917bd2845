# Three years of daily fields: monthly means, a coarser grid, an anomaly, and a table of a point.
cdo -s -O -f nc -settaxis,2001-01-01,12:00:00,1day -random,r72x36,7 one.nc &&
for year in 2001 2002 2003; do
    cdo -s -O -f nc -settaxis,$year-01-01,12:00:00,1day -duplicate,365 -random,r144x72,$year days.$year.nc || exit 1
done &&
cdo -s -O mergetime days.2001.nc days.2002.nc days.2003.nc days.nc &&
cdo -s -O monmean days.nc months.nc &&
cdo -s -O remapbil,r36x18 months.nc coarse.nc &&
cdo -s -O sub months.nc -timmean months.nc anomaly.nc &&
cdo -s -O -f grb copy coarse.nc coarse.grb &&
cdo -s outputtab,date,value -remapnn,lon=10_lat=50 days.nc > point.txt
