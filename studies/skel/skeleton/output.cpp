/* ADIOS2: the output of a program, its calls and their clock, and what the runtime asks of a library. */
#include "output.h"

#include "internal.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <type_traits>

extern "C" {
#include "text/print.h"
}

/* ---- What the runtime asks of a library ---- */

const char skeleton_library_name[] = "adios2", skeleton_library_version[] = ADIOS2_VERSION_STR;
const char skeleton_folder_ending[] = ""; /* the file is a directory */

static bool is_one_of(const char *const *names, size_t count, const std::string &name)
{
    return std::any_of(names, names + count, [&](const char *other) { return strcasecmp(other, name.c_str()) == 0; });
}

/* Engines that write files, as in python/understudy/adios2/engines.py, and the parameters by which they do. */
static const char *const engines[] = {"BP5", "BP4", "HDF5", "BP", "BPFile", "File", "FileStream"};
static const char *const parameters[] = {"AggregationType",
                                         "AggregatorRatio",
                                         "AppendAfterSteps",
                                         "AsyncOpen",
                                         "AsyncWrite",
                                         "BufferChunkSize",
                                         "BufferGrowthFactor",
                                         "BufferVType",
                                         "BurstBufferDrain",
                                         "BurstBufferPath",
                                         "BurstBufferVerbose",
                                         "CollectiveMetadata",
                                         "DataFileTransport",
                                         "DirectIO",
                                         "DirectIOAlignBuffer",
                                         "DirectIOAlignOffset",
                                         "EnableWriterRerouting",
                                         "FlattenSteps",
                                         "FlushStepsCount",
                                         "GrowthFactor",
                                         "H5ChunkDim",
                                         "H5ChunkVar",
                                         "H5CollectiveMPIO",
                                         "IdleH5Writer",
                                         "InitialBufferSize",
                                         "MaxBufferSize",
                                         "MaxShmSize",
                                         "MetadataThreads",
                                         "MinDeferredSize",
                                         "Node-Local",
                                         "NodeLocal",
                                         "NumAggregators",
                                         "NumSubFiles",
                                         "OneLevelGatherRanksLimit",
                                         "Profile",
                                         "ProfileUnits",
                                         "ReroutingThresholdFactor",
                                         "S3AccessKeyID",
                                         "S3Bucket",
                                         "S3DirectUploadThreshold",
                                         "S3Endpoint",
                                         "S3ObjectMode",
                                         "S3SecretKey",
                                         "S3SessionToken",
                                         "StatsBlockSize",
                                         "StatsLevel",
                                         "StripeSize",
                                         "SubStreams",
                                         "Threads",
                                         "UseOneTimeAttributes",
                                         "UseSelectiveMetadataAggregation",
                                         "UUID",
                                         "Verbose"};

static std::map<std::string, std::string> parameters_of(const char *text)
{
    std::map<std::string, std::string> pairs;
    for (const char *at = text ? text : ""; *at;) {
        const size_t length = strcspn(at, ";"), key = strcspn(at, "=");
        pairs[std::string(at, key)] = std::string(at + key + 1, length - key - 1);
        at += length + (at[length] == ';');
    }
    return pairs;
}

void skeleton_check_library_options(struct skeleton *run)
{
    const char *engine = run->options.method;
    if (engine && !is_one_of(engines, std::size(engines), engine))
        skeleton_leave(run, 0, "--engine %s: it writes no files, or is unknown; expected BP5, BP4 or HDF5", engine);
    for (const auto &pair : parameters_of(run->options.parameters))
        if (!is_one_of(parameters, std::size(parameters), pair.first))
            skeleton_leave(run, 0, "--parameter %s: no engine that writes files has this parameter",
                           pair.first.c_str());
#if !ADIOS2_USE_MPI
    if (run->ranks > 1)
        skeleton_leave(run, 0, "this ADIOS2 was built without MPI; expected one process, found %d", run->ranks);
#endif
}

void skeleton_prepare_config(struct skeleton *run)
{
    long long bytes = 0;
    snprintf(run->config, sizeof run->config, "%s", run->options.config);
    std::string text;
    if (run->rank == 0) {
        std::ifstream file(run->config, std::ios::binary);
        text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
        if (text.empty())
            skeleton_die(run, "%s: cannot be read, or is empty", run->config);
        bytes = (long long)text.size() + 1;
    }
    PMPI_Bcast(&bytes, 1, MPI_LONG_LONG, 0, run->comm);
    run->config_text = static_cast<char *>(skeleton_array(run, "the config", (size_t)bytes, 1));
    memcpy(run->config_text, text.c_str(), text.size());
    PMPI_Bcast(run->config_text, (int)bytes, MPI_CHAR, 0, run->comm);
}

void skeleton_remove_config(const struct skeleton *)
{
}
void skeleton_start_library(struct skeleton *)
{
}
void skeleton_finish_library(struct skeleton *)
{
}

void skeleton_describe_group(struct skeleton *run, struct group *group)
{
    group->transforms = strstr(run->config_text, "<operation") != nullptr;
    group->buffer_bytes = INT64_MAX;
}

/* data.N, md.N, mmd.N, md.idx and profiling.json. */
bool skeleton_is_subfile(const struct skeleton *run, const char *entry, const char *)
{
    static const char *const numbered[] = {"data", "md", "mmd"}, *const plain[] = {"md.idx", "profiling.json"};
    for (const char *name : numbered) {
        const size_t length = strlen(name);
        const char *rest =
            strncmp(entry, name, length) == 0 ? skeleton_behind_number(entry + length, run->ranks - 1) : nullptr;
        if (rest && *rest == '\0')
            return true;
    }
    return std::any_of(std::begin(plain), std::end(plain), [&](const char *name) { return strcmp(entry, name) == 0; });
}

namespace skel
{

/* ---- Layouts ---- */

Layout table(const adios2::Dims &shape, size_t dimensions, bool local, const uint64_t *numbers, size_t count, int rank)
{
    const size_t starts = local ? 0 : dimensions, width = 1 + starts + dimensions;
    Layout layout{shape, {}};
    for (const uint64_t *row = numbers; row < numbers + count; row += width)
        if (row[0] == (uint64_t)rank)
            layout.blocks.push_back({{row + 1, row + 1 + starts}, {row + 1 + starts, row + width}});
    return layout;
}

bool among(const int *ranks, size_t count, int rank)
{
    return std::find(ranks, ranks + count, rank) != ranks + count;
}

static size_t elements(const adios2::Dims &count)
{
    size_t product = 1;
    for (const size_t side : count)
        product *= side;
    return product;
}

/* ---- Output ---- */

/* The contents of arrays of one type: the runtime's types, and how many of those an element has. */
template <class T> constexpr skeleton_type element_type()
{
    return std::is_same<T, float>::value || std::is_same<T, std::complex<float>>::value     ? SKELETON_F32
           : std::is_same<T, double>::value || std::is_same<T, std::complex<double>>::value ? SKELETON_F64
           : sizeof(T) == 1 ? (std::is_signed<T>::value ? SKELETON_I8 : SKELETON_U8)
           : sizeof(T) == 2 ? (std::is_signed<T>::value ? SKELETON_I16 : SKELETON_U16)
           : sizeof(T) == 4 ? (std::is_signed<T>::value ? SKELETON_I32 : SKELETON_U32)
                            : (std::is_signed<T>::value ? SKELETON_I64 : SKELETON_U64);
}
template <class T> struct Parts {
    static constexpr size_t count = 1;
};
template <class T> struct Parts<std::complex<T>> {
    static constexpr size_t count = 2;
};
template <> struct Parts<long double> { /* its 16 bytes as two numbers */
    static constexpr size_t count = 2;
};

enum { TYPES = SKELETON_F64 + 1 };
static const size_t type_bytes[TYPES] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

/* What went wrong, without the time and the places that ADIOS2 states before it. */
static std::string reason(const std::exception &error)
{
    std::string text = error.what();
    const size_t head = text.find("> : ");
    if (head != std::string::npos)
        text.erase(0, head + 4);
    text.erase(std::min(text.find('\x1b'), text.size())); /* colours */
    while (!text.empty() && isspace((unsigned char)text.back()))
        text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.find("BZ_OUTBUFF_FULL") != std::string::npos)
        text += "; the contents do not compress: choose others with --fill";
    return text;
}

/* An operator that the library lacks is thrown from a function of ADIOS2 that must not throw. */
static const struct skeleton *terminating; /* a handler gets no argument */

static void terminate()
{
    const std::exception_ptr thrown = std::current_exception();
    try {
        if (thrown)
            std::rethrow_exception(thrown);
    } catch (const std::exception &error) {
        skeleton_die(terminating, "%s: %s", terminating->config, reason(error).c_str());
    } catch (...) {
    }
    abort();
}

enum class Mode { plan, write, verify, list };

struct Output::State {
    struct skeleton *run;
    const Program &program;
    adios2::ADIOS adios;
    adios2::IO io;
    adios2::Engine engine;
    std::string path;
    Mode mode = Mode::plan;
    uint64_t bytes = 0;                        /* of the step */
    size_t used[TYPES] = {}, most[TYPES] = {}; /* elements of each type in the step, and in any */
    void *contents[TYPES] = {};
    size_t step = 0; /* that is verified */
    std::function<void(int rank)> write_rank;
    std::string listed; /* variable whose blocks of all processes are listed */
    std::vector<Block> boxes;
    bool is_collective = false; /* HDF5: all processes define each variable, or wait for ever */
    struct record *record = nullptr;

    State(struct skeleton *of, const Program &name, adios2::ADIOS &&library)
        : run(of), program(name), adios(std::move(library))
    {
    }

    /* A call of ADIOS2, which throws what went wrong. */
    template <class Call> void checked(const char *name, const std::string &what, Call call)
    {
        try {
            call();
        } catch (const std::exception &error) {
            skeleton_die(run, "%s of %s failed: %s", name, what.c_str(), reason(error).c_str());
        }
    }

    template <class Call> void timed(enum phase phase, const char *name, const std::string &what, Call call)
    {
        skeleton_begin_phase(run, record, phase);
        checked(name, what, call);
        skeleton_end_phase(run, record, phase);
    }

    template <class T> adios2::Variable<T> variable(const std::string &name, const adios2::Dims &shape)
    {
        adios2::Variable<T> known;
        checked("DefineVariable", name, [&] {
            known = io.InquireVariable<T>(name);
            if (!known)
                known = io.DefineVariable<T>(name, shape);
        });
        return known;
    }

    template <class T> const T *take(size_t count)
    {
        constexpr skeleton_type type = element_type<T>();
        const size_t at = used[type];
        used[type] += count * Parts<T>::count;
        most[type] = std::max(most[type], used[type]);
        return contents[type] ? reinterpret_cast<const T *>(static_cast<char *>(contents[type]) + at * type_bytes[type])
                              : nullptr;
    }

    /* Before a step is written: can the engine write the variable? All processes know whether it is global; each,
     * whether it has a block. */
    void check_collective(const std::string &name, bool is_global, bool has_block)
    {
        static const char text[] = "%s: the engine HDF5 writes on more than one process only values of all, and global "
                                   "arrays of which each process has a block; expected BP5 or BP4";
        if (mode != Mode::plan || !is_collective)
            return;
        if (!is_global)
            skeleton_leave(run, 0, text, name.c_str());
        if (!has_block)
            skeleton_die(run, text, name.c_str());
    }

    void differs(const std::string &name, const char *what)
    {
        skeleton_die(run, "%s: %s in step %zu: %s differs from what was written", path.c_str(), name.c_str(), step,
                     what);
    }

    std::vector<bool> overlap(const std::string &name, const Block &block);
    template <class T> void verify_blocks(const std::string &name, const Layout &layout, const T *data);
    template <class T> void put_value(const std::string &name, const T &value, const adios2::Dims &shape);
};

static adios2::ADIOS library(struct skeleton *run)
{
    try {
#if ADIOS2_USE_MPI
        return adios2::ADIOS(run->config, run->comm);
#else
        return adios2::ADIOS(run->config);
#endif
    } catch (const std::exception &error) {
        skeleton_leave(run, 0, "%s: %s", run->config, reason(error).c_str());
    }
}

Output::Output(struct skeleton *run, const Program &program) : state(new State(run, program, library(run)))
{
    try { /* what fails does so on all processes */
        state->io = state->adios.DeclareIO(program.io);
        if (run->options.method)
            state->io.SetEngine(run->options.method);
        for (const auto &pair : parameters_of(run->options.parameters))
            state->io.SetParameter(pair.first, pair.second);
    } catch (const std::exception &error) {
        skeleton_leave(run, 0, "%s: %s", run->config, reason(error).c_str());
    }
    std::string engine = state->io.EngineType();
    if (!is_one_of(engines, std::size(engines), engine))
        skeleton_leave(run, 0, "%s: engine %s: it writes no files, or is unknown; expected BP5, BP4 or HDF5",
                       run->config, engine.c_str());
    state->is_collective = run->ranks > 1 && strcasecmp(engine.c_str(), "HDF5") == 0;
    if (!run->options.method) { /* the result names it */
        static const char *const defaults[] = {"BP", "BPFile", "File", "FileStream"};
        run->options.method = strdup(is_one_of(defaults, std::size(defaults), engine) ? "BP5" : engine.c_str());
    }
}

Output::~Output()
{
    for (void *data : state->contents)
        free(data);
    delete state;
}

template <class T> void Output::attribute(const std::string &name, const T &value)
{
    state->checked("DefineAttribute", name, [&] { state->io.DefineAttribute<T>(name, value); });
}

template <class T> void Output::attribute_array(const std::string &name, const std::vector<T> &values)
{
    state->checked("DefineAttribute", name, [&] { state->io.DefineAttribute<T>(name, values.data(), values.size()); });
}

template <class T> static uint64_t bytes_of(const T &)
{
    return sizeof(T);
}
static uint64_t bytes_of(const std::string &text)
{
    return text.size();
}

template <class T> void Output::State::put_value(const std::string &name, const T &value, const adios2::Dims &shape)
{
    if (mode == Mode::list)
        return;
    bytes += bytes_of(value);
    adios2::Variable<T> known = variable<T>(name, shape);
    if (mode == Mode::write)
        timed(PHASE_WRITE, "Put", name, [&] { engine.Put(known, value); });
    else if (mode == Mode::verify)
        checked("Get", name, [&] {
            adios2::IO again = adios.AtIO("verification");
            adios2::Variable<T> stored = again.InquireVariable<T>(name);
            T copy{};
            if (!stored)
                differs(name, "its name or type");
            if (!shape.empty())
                return; /* of each process: which is whose is not stated in all versions */
            engine.Get(stored, copy, adios2::Mode::Sync);
            if (copy != value)
                differs(name, "the value");
        });
}

template <class T> void Output::value(const std::string &name, const T &value, bool writes)
{
    if (writes || state->is_collective)
        state->put_value(name, value, {});
}

template <class T> void Output::local_value(const std::string &name, const T &value, bool writes)
{
    state->check_collective(name, false, writes);
    if (writes)
        state->put_value(name, value, {adios2::LocalValueDim});
}

/* Elements of a block that other blocks have too: of which of them a reader gets them is not defined. */
std::vector<bool> Output::State::overlap(const std::string &name, const Block &block)
{
    mode = Mode::list;
    listed = name;
    boxes.clear();
    for (int rank = 0; rank < run->ranks; ++rank)
        write_rank(rank);
    mode = Mode::verify;
    std::vector<bool> overlaps(elements(block.count));
    bool itself = true;
    for (const Block &box : boxes) {
        if (itself && box.start == block.start && box.count == block.count) {
            itself = false;
            continue;
        }
        for (size_t i = 0; i < overlaps.size(); ++i) {
            bool inside = true;
            size_t rest = i;
            for (size_t d = block.count.size(); d-- > 0; rest /= block.count[d]) {
                const size_t at = block.start[d] + rest % block.count[d];
                inside = inside && at >= box.start[d] && at < box.start[d] + box.count[d];
            }
            if (inside)
                overlaps[i] = true;
        }
    }
    return overlaps;
}

template <class T> void Output::State::verify_blocks(const std::string &name, const Layout &layout, const T *data)
{
    checked("Get", name, [&] {
        adios2::IO again = adios.AtIO("verification");
        adios2::Variable<T> stored = again.InquireVariable<T>(name);
        if (!stored)
            differs(name, "its name or type");
        const bool lossy = !stored.Operations().empty() || strstr(run->config_text, "<operation");
        const bool is_global = !layout.blocks.empty() && !layout.blocks[0].start.empty();
        const bool lists_blocks = strcasecmp(run->options.method, "HDF5") != 0;
        const auto all = engine.BlocksInfo(stored, engine.CurrentStep());
        const bool reads_blocks = strcasecmp(run->options.method, "BP5") == 0; /* BP4 reads their boxes */
        size_t whole = 0;
        for (const auto &block : layout.blocks) {
            const size_t count = elements(block.count);
            std::vector<T> copy(count);
            bool stands = count == 0 || !lists_blocks, same = count == 0 || lossy;
            const auto equals = [&] {
                engine.Get(stored, copy.data(), adios2::Mode::Sync);
                same = memcmp(static_cast<const void *>(copy.data()), data + whole, count * sizeof(T)) == 0;
            };
            for (const auto &info : all) {
                if (info.Count != block.count || (is_global && info.Start != block.start))
                    continue;
                stands = true;
                if (same || !reads_blocks)
                    break;
                stored.SetBlockSelection(info.BlockID);
                equals();
            }
            if (!stands)
                differs(name, "a block");
            if (!reads_blocks && !same && is_global) {
                stored.SetSelection({block.start, block.count});
                equals();
                const auto overlaps = same ? std::vector<bool>() : overlap(name, block);
                for (size_t i = 0; !same && i < count; ++i)
                    if (!overlaps[i] && memcmp(&copy[i], data + whole + i, sizeof(T)) != 0)
                        differs(name, "a block's contents");
            } else if (!same && (reads_blocks || is_global))
                differs(name, "a block's contents");
            whole += count;
        }
    });
}

template <class T> void Output::put(const std::string &name, const Layout &layout, const T *data)
{
    if (state->mode == Mode::list) {
        if (name == state->listed)
            state->boxes.insert(state->boxes.end(), layout.blocks.begin(), layout.blocks.end());
        return;
    }
    size_t count = 0;
    for (const Block &block : layout.blocks)
        count += elements(block.count);
    const T *at = data ? data : state->take<T>(count);
    state->bytes += count * sizeof(T);
    state->check_collective(name, !layout.shape.empty(), !layout.blocks.empty());
    if (layout.blocks.empty())
        return;
    if (state->mode == Mode::verify) {
        state->verify_blocks(name, layout, at);
        return;
    }
    adios2::Variable<T> known;
    state->checked("DefineVariable", name, [&] {
        known = state->io.InquireVariable<T>(name);
        if (!known)
            known = state->io.DefineVariable<T>(name, layout.shape, layout.blocks[0].start, layout.blocks[0].count);
        else if (!layout.shape.empty() && !layout.blocks[0].start.empty())
            known.SetShape(layout.shape);
    });
    for (const Block &block : layout.blocks) {
        if (state->mode == Mode::write) {
            state->checked("SetSelection", name, [&] { known.SetSelection({block.start, block.count}); });
            state->timed(PHASE_WRITE, "Put", name, [&] { state->engine.Put(known, at); });
            at += elements(block.count);
        }
    }
}

/* ---- Steps ---- */

void Output::begin_step()
{
    struct skeleton *run = state->run;
    char path[PATH_BYTES];
    state->record = skeleton_open_record(run, state->program.file, path);
    state->mode = Mode::write;
    state->bytes = 0;
    std::fill(std::begin(state->used), std::end(state->used), 0);
    if (!state->engine) {
        state->path = path;
        state->timed(PHASE_OPEN, "Open", path, [&] { state->engine = state->io.Open(path, adios2::Mode::Write); });
    }
    state->timed(PHASE_OPEN, "BeginStep", path, [&] { state->engine.BeginStep(); });
    skeleton_wait(run, SKELETON_BEFORE_WRITE);
}

void Output::end_step()
{
    struct skeleton *run = state->run;
    state->record->bytes = (int64_t)state->bytes;
    skeleton_wait(run, SKELETON_BEFORE_CLOSE);
    const bool last = !run->options.append || skeleton_step_index(run) + 1 == run->options.steps;
    state->timed(PHASE_CLOSE, "EndStep", state->path, [&] {
        skeleton_inject_faults(run);
        state->engine.EndStep();
    });
    if (last) {
        state->timed(PHASE_CLOSE, "Close", state->path, [&] { state->engine.Close(); });
        state->engine = adios2::Engine();
    }
    skeleton_close_record(run, state->record);
}

void Output::begin_plan()
{
    state->mode = Mode::plan;
    state->bytes = 0;
    std::fill(std::begin(state->used), std::end(state->used), 0);
}

uint64_t Output::end_plan()
{
    return state->bytes;
}

void Output::allocate()
{
    for (int type = 0; type < TYPES; ++type) {
        state->contents[type] = skeleton_array(state->run, "contents", state->most[type], type_bytes[type]);
        skeleton_fill(state->run, state->contents[type], state->most[type], (skeleton_type)type,
                      state->run->options.fill);
    }
}

void Output::verify(WriteStep write_step, int steps)
{
    PMPI_Barrier(state->run->comm);
    state->mode = Mode::verify;
    state->run->is_verifying = true;
    state->checked("Open", state->path, [&] {
        adios2::IO again = state->adios.DeclareIO("verification");
        if (strcasecmp(state->run->options.method, "HDF5") == 0)
            again.SetEngine("HDF5");
#if ADIOS2_USE_MPI
        state->engine = again.Open(state->path, adios2::Mode::Read, MPI_COMM_SELF);
#else
        state->engine = again.Open(state->path, adios2::Mode::Read);
#endif
    });
    const bool append = state->run->options.append;
    const int written = append ? state->run->options.steps : 1;
    for (int s = 0; s < written; ++s) {
        const int step = append ? s : state->run->options.steps - 1;
        auto status = adios2::StepStatus::NotReady;
        state->step = (size_t)s;
        std::fill(std::begin(state->used), std::end(state->used), 0);
        state->checked("BeginStep", state->path,
                       [&] { status = state->engine.BeginStep(adios2::StepMode::Read, 0.0f); });
        if (status != adios2::StepStatus::OK)
            skeleton_die(state->run, "%s: has %d steps, %d were written", state->path.c_str(), s, written);
        state->write_rank = [&](int rank) { write_step(*this, rank, std::min(step, steps - 1)); };
        state->write_rank(state->run->rank);
        state->checked("EndStep", state->path, [&] { state->engine.EndStep(); });
    }
    state->checked("Close", state->path, [&] {
        state->engine.Close();
        state->engine = adios2::Engine();
        state->adios.RemoveIO("verification");
    });
    PMPI_Barrier(state->run->comm);
    state->run->is_verifying = false;
}

/* ---- The program ---- */

static int run_steps(const skeleton_options &options, const Program &program, Attributes attributes,
                     WriteStep write_step)
{
    struct skeleton *run = skeleton_start(&options, MPI_COMM_WORLD);
    terminating = run;
    const std::terminate_handler before = std::set_terminate(terminate);
    {
        Output output(run, program);
        uint64_t most = 0;
        attributes(output);
        const int planned = program.compute ? 0 : std::min(program.steps, options.steps);
        for (int step = 0; step < planned; ++step) {
            output.begin_plan();
            write_step(output, run->rank, step);
            most = std::max(most, output.end_plan());
        }
        skeleton_check_capacity(run, most);
        output.allocate();
        while (skeleton_repetition(run)) {
            while (skeleton_step(run)) {
                const int step = skeleton_step_index(run);
                if (program.compute)
                    program.compute(run->rank, step);
                output.begin_step();
                write_step(output, run->rank, program.compute ? step : std::min(step, program.steps - 1));
                output.end_step();
            }
            if (options.verify && !program.compute)
                output.verify(write_step, program.steps);
        }
    }
    std::set_terminate(before);
    skeleton_finish(run);
    return EXIT_SUCCESS;
}

int play(int argc, char **argv, const Program &program, Attributes attributes, WriteStep write_step)
{
    int ranks, rank, status = EXIT_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    skeleton_options options = skeleton_defaults(program.name, program.application, program.kind, program.config);
    options.adios = 2;
    options.steps = program.steps;
    options.append = true;
    options.fill = SKELETON_FILL_RANDOM;
    const int answer = skeleton_read_options(argc, argv, MPI_COMM_WORLD, &options);
    if (answer != SKELETON_GO)
        status = answer == SKELETON_HELP ? EXIT_SUCCESS : 2;
    else if (program.ranks && ranks != program.ranks) {
        status = 2;
        if (rank == 0)
            und_print(stderr, "%s: its blocks are those of %d processes; expected as many, found %d", program.name,
                      program.ranks, ranks);
    } else
        status = run_steps(options, program, attributes, write_step);
    MPI_Finalize();
    return status;
}

/* ---- Types ---- */

#define OF_TYPE(T)                                                              \
    template void Output::value<T>(const std::string &, const T &, bool);       \
    template void Output::local_value<T>(const std::string &, const T &, bool); \
    template void Output::attribute<T>(const std::string &, const T &);         \
    template void Output::attribute_array<T>(const std::string &, const std::vector<T> &);
#define OF_ELEMENT(T) \
    OF_TYPE(T)        \
    template void Output::put<T>(const std::string &, const Layout &, const T *);

OF_TYPE(std::string)
OF_ELEMENT(char)
OF_ELEMENT(int8_t)
OF_ELEMENT(int16_t)
OF_ELEMENT(int32_t)
OF_ELEMENT(int64_t)
OF_ELEMENT(uint8_t)
OF_ELEMENT(uint16_t)
OF_ELEMENT(uint32_t)
OF_ELEMENT(uint64_t)
OF_ELEMENT(float)
OF_ELEMENT(double)
OF_ELEMENT(long double)
OF_ELEMENT(std::complex<float>)
OF_ELEMENT(std::complex<double>)

}  // namespace skel
