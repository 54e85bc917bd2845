/*
 * A loop that reads small files and does nothing else, to compare with: processes fork, and each opens, reads
 * and closes its share of the files so many times.
 *
 * smallfiles DIRECTORY PROCESSES FILES BYTES FILES_PER_DIRECTORY PASSES SHUFFLED
 *
 * With 0 passes it creates the directories and the files.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 512 };

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void name(char *path, const char *directory, long file, long each)
{
    if (each > 0)
        snprintf(path, PATH_BYTES, "%s/files.d%06ld/%08ld", directory, file / each, file);
    else
        snprintf(path, PATH_BYTES, "%s/files.%08ld", directory, file);
}

static void create(const char *directory, long files, long bytes, long each, char *buffer)
{
    char path[PATH_BYTES];
    for (long file = 0; file < files; ++file) {
        name(path, directory, file, each);
        if (each > 0 && file % each == 0) {
            char folder[PATH_BYTES];
            snprintf(folder, sizeof folder, "%s/files.d%06ld", directory, file / each);
            if (mkdir(folder, 0777) != 0)
                fail(folder);
        }
        const int descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY, 0666);
        if (descriptor < 0 || write(descriptor, buffer, (size_t)bytes) != bytes || close(descriptor) != 0)
            fail(path);
    }
}

static void read_share(const char *directory, long first, long end, long bytes, long each, long passes, int shuffled,
                       char *buffer)
{
    char path[PATH_BYTES];
    const long count = end - first;
    long *order = malloc((size_t)count * sizeof *order);
    if (!order)
        fail("order");
    for (long i = 0; i < count; ++i)
        order[i] = first + i;
    for (long i = count - 1; shuffled && i > 0; --i) {
        const long other = rand() % (i + 1), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (long pass = 0; pass < passes; ++pass)
        for (long i = 0; i < count; ++i) {
            name(path, directory, order[i], each);
            const int descriptor = open(path, O_RDONLY);
            if (descriptor < 0 || read(descriptor, buffer, (size_t)bytes) != bytes || close(descriptor) != 0)
                fail(path);
        }
    free(order);
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    const char *directory = argv[1];
    const long processes = atol(argv[2]), files = atol(argv[3]), bytes = atol(argv[4]), each = atol(argv[5]);
    const long passes = atol(argv[6]);
    char *buffer = calloc(1, (size_t)bytes);
    if (!buffer || processes < 1)
        fail("buffer");
    if (passes == 0) {
        create(directory, files, bytes, each, buffer);
        return 0;
    }
    for (long p = 0; p < processes; ++p)
        if (fork() == 0) {
            srand((unsigned)p);
            read_share(directory, files * p / processes, files * (p + 1) / processes, bytes, each, passes,
                       atoi(argv[7]), buffer);
            _exit(0);
        }
    int status, wrong = 0;
    while (wait(&status) > 0)
        wrong = wrong || status != 0;
    return wrong;
}
