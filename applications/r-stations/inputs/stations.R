# Daily values of stations: a table of each, all in one object, means as text, and the tables read back.
set.seed(3)
all <- list()
for (station in sprintf("s%02d", 1:24)) {
  days <- data.frame(day = 1:1500, high = rnorm(1500, 15, 8), low = rnorm(1500, 5, 8), rain = rexp(1500))
  write.csv(days, paste0(station, ".csv"), row.names = FALSE)
  all[[station]] <- days
}
saveRDS(all, "all.rds")
save(all, file = "all.RData", compress = FALSE)
means <- sapply(sprintf("s%02d.csv", 1:24), function(name) colMeans(read.csv(name)))
write.table(t(means), "means.txt", quote = FALSE)
again <- readRDS("all.rds")
con <- file("notes.txt", "w")
for (station in names(again))
  for (month in 1:50)
    writeLines(sprintf("%s %d %.3f", station, month, mean(again[[station]]$rain[1:30 + 30 * (month - 1)])), con)
close(con)
writeBin(unlist(again), "all.bin")
