/*
 * understudy-kernel-chimera: the restart output of CHIMERA, core-collapse supernovae by rays, as an
 * application makes it: the rays of a process are matter and neutrinos in radial zones, that move,
 * heat and radiate between the outputs (a crude hydrodynamics with transport, to give the arrays
 * values and the processes something to do and to say to each other; no physics to be used), and
 * 71 arrays go to storage by ADIOS' own calls, as the group restart.model of traces/chimera.xml.
 */
#include "kernel/kernel.h"

#ifdef UND_HAVE_ADIOS

#include "skeleton.h"

#include <math.h>
#include <mpi.h>
#include <stdlib.h>

enum { NX = 300, NEZ = 20, NNU = 4, NNC = 17, NY = 32, NZ = 12 };

/* What an array has along its dimensions. Those from RAY on have it for every ray of the process. */
enum kind {
    THREE,
    TWO,
    FACES,
    ZONES,
    NY_FACES,
    NY_ZONES,
    NZ_FACES,
    NZ_ZONES,
    RAY,
    RAY_FLAGS,
    RAY_ZONES,
    RAY_GROUPS,
    RAY_FLAVOURS,
    RAY_GAINS,
    RAY_ZONES_GROUPS_FLAVOURS,
    RAY_GROUPS_FLAVOURS,
    RAY_ZONES_FLAVOURS,
    RAY_ZONES_NUCLEI,
    RAY_ZONES_GROUPS
};

/* The arrays of the group, in the order in which they are written. */
enum {
    array_dimensions,
    radial_index_bound,
    theta_index_bound,
    phi_index_bound,
    x_ef,
    y_ef,
    z_ef,
    x_cf,
    dx_cf,
    y_cf,
    dy_cf,
    z_cf,
    dz_cf,
    e_nu_c_bar,
    f_nu_e_bar,
    rho_c,
    t_c,
    ye_c,
    u_c,
    v_c,
    w_c,
    nse_c,
    a_nuc_rep_c,
    z_nuc_rep_c,
    be_nuc_rep_c,
    uburn_c,
    duesrc,
    pMD,
    sMD,
    dudt_nuc,
    dudt_nu,
    grav_x_c,
    grav_y_c,
    grav_z_c,
    agr_e,
    agr_c,
    psi0_c,
    psi1_e,
    dnurad,
    unukrad,
    nnukrad,
    nu_r,
    nu_rt,
    nu_rho,
    nu_rhot,
    psi0dat,
    psi1dat,
    unujrad,
    nnujrad,
    e_rad,
    elec_rad,
    r_shock,
    r_shock_mn,
    r_shock_mx,
    tau_adv,
    tau_heat_nu,
    tau_heat_nuc,
    r_nse,
    unurad,
    nnurad,
    rsphere_mean,
    dsphere_mean,
    tsphere_mean,
    msphere_mean,
    esphere_mean,
    xn_c,
    r_gain,
    unu_c,
    dunu_c,
    unue_e,
    dunue_e,
    ARRAYS
};

static const struct {
    const char *name;
    enum kind kind;
} rows[ARRAYS] = {
    [array_dimensions] = {"array_dimensions", THREE},
    [radial_index_bound] = {"radial_index_bound", TWO},
    [theta_index_bound] = {"theta_index_bound", TWO},
    [phi_index_bound] = {"phi_index_bound", TWO},
    [x_ef] = {"x_ef", FACES},
    [y_ef] = {"y_ef", NY_FACES},
    [z_ef] = {"z_ef", NZ_FACES},
    [x_cf] = {"x_cf", ZONES},
    [dx_cf] = {"dx_cf", ZONES},
    [y_cf] = {"y_cf", NY_ZONES},
    [dy_cf] = {"dy_cf", NY_ZONES},
    [z_cf] = {"z_cf", NZ_ZONES},
    [dz_cf] = {"dz_cf", NZ_ZONES},
    [e_nu_c_bar] = {"e_nu_c_bar", ZONES},
    [f_nu_e_bar] = {"f_nu_e_bar", ZONES},
    [rho_c] = {"rho_c", RAY_ZONES},
    [t_c] = {"t_c", RAY_ZONES},
    [ye_c] = {"ye_c", RAY_ZONES},
    [u_c] = {"u_c", RAY_ZONES},
    [v_c] = {"v_c", RAY_ZONES},
    [w_c] = {"w_c", RAY_ZONES},
    [nse_c] = {"nse_c", RAY_FLAGS},
    [a_nuc_rep_c] = {"a_nuc_rep_c", RAY_ZONES},
    [z_nuc_rep_c] = {"z_nuc_rep_c", RAY_ZONES},
    [be_nuc_rep_c] = {"be_nuc_rep_c", RAY_ZONES},
    [uburn_c] = {"uburn_c", RAY_ZONES},
    [duesrc] = {"duesrc", RAY_ZONES},
    [pMD] = {"pMD", RAY_ZONES},
    [sMD] = {"sMD", RAY_ZONES},
    [dudt_nuc] = {"dudt_nuc", RAY_ZONES},
    [dudt_nu] = {"dudt_nu", RAY_ZONES},
    [grav_x_c] = {"grav_x_c", RAY_ZONES},
    [grav_y_c] = {"grav_y_c", RAY_ZONES},
    [grav_z_c] = {"grav_z_c", RAY_ZONES},
    [agr_e] = {"agr_e", RAY_ZONES},
    [agr_c] = {"agr_c", RAY_ZONES},
    [psi0_c] = {"psi0_c", RAY_ZONES_GROUPS_FLAVOURS},
    [psi1_e] = {"psi1_e", RAY_ZONES_GROUPS_FLAVOURS},
    [dnurad] = {"dnurad", RAY_ZONES_GROUPS_FLAVOURS},
    [unukrad] = {"unukrad", RAY_GROUPS_FLAVOURS},
    [nnukrad] = {"nnukrad", RAY_GROUPS_FLAVOURS},
    [nu_r] = {"nu_r", RAY_GROUPS_FLAVOURS},
    [nu_rt] = {"nu_rt", RAY_GROUPS_FLAVOURS},
    [nu_rho] = {"nu_rho", RAY_GROUPS_FLAVOURS},
    [nu_rhot] = {"nu_rhot", RAY_GROUPS_FLAVOURS},
    [psi0dat] = {"psi0dat", RAY_GROUPS_FLAVOURS},
    [psi1dat] = {"psi1dat", RAY_GROUPS_FLAVOURS},
    [unujrad] = {"unujrad", RAY_ZONES_FLAVOURS},
    [nnujrad] = {"nnujrad", RAY_ZONES_FLAVOURS},
    [e_rad] = {"e_rad", RAY},
    [elec_rad] = {"elec_rad", RAY},
    [r_shock] = {"r_shock", RAY},
    [r_shock_mn] = {"r_shock_mn", RAY},
    [r_shock_mx] = {"r_shock_mx", RAY},
    [tau_adv] = {"tau_adv", RAY},
    [tau_heat_nu] = {"tau_heat_nu", RAY},
    [tau_heat_nuc] = {"tau_heat_nuc", RAY},
    [r_nse] = {"r_nse", RAY},
    [unurad] = {"unurad", RAY_FLAVOURS},
    [nnurad] = {"nnurad", RAY_FLAVOURS},
    [rsphere_mean] = {"rsphere_mean", RAY_FLAVOURS},
    [dsphere_mean] = {"dsphere_mean", RAY_FLAVOURS},
    [tsphere_mean] = {"tsphere_mean", RAY_FLAVOURS},
    [msphere_mean] = {"msphere_mean", RAY_FLAVOURS},
    [esphere_mean] = {"esphere_mean", RAY_FLAVOURS},
    [xn_c] = {"xn_c", RAY_ZONES_NUCLEI},
    [r_gain] = {"r_gain", RAY_GAINS},
    [unu_c] = {"unu_c", RAY_ZONES_GROUPS},
    [dunu_c] = {"dunu_c", RAY_ZONES_GROUPS},
    [unue_e] = {"unue_e", RAY_ZONES_GROUPS},
    [dunue_e] = {"dunue_e", RAY_ZONES_GROUPS},
};

/* Fields that zones of neighbouring rays exchange. */
static const int coupled[] = {rho_c, t_c, u_c};
enum { COUPLED = sizeof coupled / sizeof coupled[0] };
enum { LESS_THETA, MORE_THETA, LESS_PHI, MORE_PHI, SIDES };

struct chimera {
    struct skeleton *run;
    MPI_Comm plane;
    int neighbour[SIDES];
    int32_t ij, ik;                 /* rays of a process along theta and phi */
    int32_t ij_rays, ik_rays;       /* of all */
    int32_t first_j, first_k;       /* of this process */
    int32_t along_theta, along_phi; /* processes */
    int32_t rank, cycle;
    double time_s, dt_s, bounce_s, energy, densest;
    void *arrays[ARRAYS];
    double *halo[SIDES], *edge; /* COUPLED * rays of a side * NX */
};

static int64_t elements_of_ray(enum kind kind)
{
    switch (kind) {
    case RAY_FLAGS:
    case RAY_ZONES: return NX;
    case RAY_GROUPS: return NEZ;
    case RAY_FLAVOURS: return NNU;
    case RAY_GAINS: return NNU + 1;
    case RAY_ZONES_GROUPS_FLAVOURS: return NX * NEZ * NNU;
    case RAY_GROUPS_FLAVOURS: return NEZ * NNU;
    case RAY_ZONES_FLAVOURS: return NX * NNU;
    case RAY_ZONES_NUCLEI: return NX * NNC;
    case RAY_ZONES_GROUPS: return NX * NEZ;
    default: return 1;
    }
}

static int64_t elements_of(const struct chimera *star, int array)
{
    switch (rows[array].kind) {
    case THREE: return 3;
    case TWO: return 2;
    case FACES: return NX + 1;
    case ZONES: return NX;
    case NY_FACES: return NY + 1;
    case NY_ZONES: return NY;
    case NZ_FACES: return NZ + 1;
    case NZ_ZONES: return NZ;
    default: return (int64_t)star->ij * star->ik * elements_of_ray(rows[array].kind);
    }
}

static size_t element_bytes(int array)
{
    const enum kind kind = rows[array].kind;
    return kind == THREE || kind == TWO || kind == RAY_FLAGS ? sizeof(int32_t) : sizeof(double);
}

/* A field of one ray. */
static double *of_ray(const struct chimera *star, int array, int ray)
{
    return (double *)star->arrays[array] + ray * elements_of_ray(rows[array].kind);
}

static double *whole(const struct chimera *star, int array)
{
    return star->arrays[array];
}

static void lay_out(struct chimera *star, int64_t rays)
{
    int64_t ij, ik;
    int size, processes[2] = {0, 0}, place[2];
    const int periodic[2] = {1, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Dims_create(size, 2, processes);
    MPI_Cart_create(MPI_COMM_WORLD, 2, processes, periodic, 0, &star->plane);
    MPI_Comm_rank(star->plane, &star->rank);
    MPI_Cart_coords(star->plane, star->rank, 2, place);
    MPI_Cart_shift(star->plane, 0, 1, &star->neighbour[LESS_PHI], &star->neighbour[MORE_PHI]);
    MPI_Cart_shift(star->plane, 1, 1, &star->neighbour[LESS_THETA], &star->neighbour[MORE_THETA]);
    und_kernel_plane(rays, &ij, &ik);
    star->along_phi = processes[0];
    star->along_theta = processes[1];
    star->ij = (int32_t)ij;
    star->ik = (int32_t)ik;
    star->ij_rays = star->ij * star->along_theta;
    star->ik_rays = star->ik * star->along_phi;
    star->first_j = star->ij * place[1];
    star->first_k = star->ik * place[0];
}

static void make_mesh(struct chimera *star, int faces, int centres, int widths, int zones, double from, double to,
                      double stretch)
{
    double *face = whole(star, faces), *centre = whole(star, centres), *width = whole(star, widths);
    for (int i = 0; i <= zones; ++i)
        face[i] = from + (to - from) * pow((double)i / zones, stretch);
    for (int i = 0; i < zones; ++i) {
        centre[i] = 0.5 * (face[i] + face[i + 1]);
        width[i] = face[i + 1] - face[i];
    }
}

static void make_bounds(struct chimera *star)
{
    const int32_t bounds[3] = {NX, star->ij_rays, star->ik_rays};
    static const int arrays[3] = {radial_index_bound, theta_index_bound, phi_index_bound};
    for (int d = 0; d < 3; ++d) {
        ((int32_t *)star->arrays[array_dimensions])[d] = bounds[d];
        ((int32_t *)star->arrays[arrays[d]])[0] = 1;
        ((int32_t *)star->arrays[arrays[d]])[1] = bounds[d];
    }
}

/* A star that collapses, a little different along every ray. */
static void begin_ray(struct chimera *star, int ray)
{
    const double *x = whole(star, x_cf);
    double *rho = of_ray(star, rho_c, ray), *t = of_ray(star, t_c, ray), *ye = of_ray(star, ye_c, ray);
    double *u = of_ray(star, u_c, ray), *nuclei = of_ray(star, xn_c, ray);
    const int j = star->first_j + ray % star->ij, k = star->first_k + ray / star->ij;
    const double tilt = 1 + 0.01 * sin(0.7 * j) * cos(0.3 * k);
    for (int i = 0; i < NX; ++i) {
        const double depth = 1 / (1 + x[i] / 1e7);
        rho[i] = 1e10 * depth * depth * depth * tilt;
        t[i] = 6e9 * depth * tilt;
        ye[i] = 0.5 - 0.2 * depth;
        u[i] = -1e8 * depth * (1 - depth);
        for (int n = 0; n < NNC; ++n)
            nuclei[n * NX + i] = 1.0 / NNC;
    }
}

static void begin(struct chimera *star, int64_t rays)
{
    uint64_t bytes = 0;
    lay_out(star, rays);
    for (int a = 0; a < ARRAYS; ++a)
        bytes += (uint64_t)elements_of(star, a) * element_bytes(a);
    skeleton_check_capacity(star->run, bytes);
    for (int a = 0; a < ARRAYS; ++a)
        star->arrays[a] = skeleton_array(star->run, rows[a].name, (size_t)elements_of(star, a), element_bytes(a));
    const size_t side = (size_t)COUPLED * NX * (size_t)(star->ij > star->ik ? star->ij : star->ik);
    for (int s = 0; s < SIDES; ++s)
        star->halo[s] = skeleton_array(star->run, "the zones of neighbours", side, sizeof(double));
    star->edge = skeleton_array(star->run, "the zones at an edge", side, sizeof(double));
    make_mesh(star, x_ef, x_cf, dx_cf, NX, 1e5, 5e8, 2);
    make_mesh(star, y_ef, y_cf, dy_cf, NY, 0, 3.14159265358979324, 1);
    make_mesh(star, z_ef, z_cf, dz_cf, NZ, 0, 6.28318530717958648, 1);
    make_bounds(star);
    for (int ray = 0; ray < star->ij * star->ik; ++ray)
        begin_ray(star, ray);
    star->dt_s = 1e-5;
}

/* Rays at a side of the process, and the first and the distance of them. */
static int rays_of_side(const struct chimera *star, int side, int *first, int *stride)
{
    const bool theta = side == LESS_THETA || side == MORE_THETA;
    *stride = theta ? star->ij : 1;
    *first = side == MORE_THETA ? star->ij - 1 : side == MORE_PHI ? (star->ik - 1) * star->ij : 0;
    return theta ? star->ik : star->ij;
}

static int pack(const struct chimera *star, int side)
{
    int first, stride, at = 0;
    const int rays = rays_of_side(star, side, &first, &stride);
    for (int r = 0; r < rays; ++r)
        for (int c = 0; c < COUPLED; ++c) {
            const double *from = of_ray(star, coupled[c], first + r * stride);
            for (int i = 0; i < NX; ++i)
                star->edge[at++] = from[i];
        }
    return at;
}

/* At the poles there is nobody: what would be there stays 0, and is not looked at. */
static void exchange_halo(struct chimera *star)
{
    for (int side = 0; side < SIDES; ++side) {
        const int opposite = side ^ 1, count = pack(star, side);
        MPI_Sendrecv(star->edge, count, MPI_DOUBLE, star->neighbour[side], side, star->halo[opposite], count,
                     MPI_DOUBLE, star->neighbour[opposite], side, star->plane, MPI_STATUS_IGNORE);
    }
}

/* A coupled field of the ray beside this one; of this one itself at a pole. */
static const double *beside(const struct chimera *star, int c, int ray, int side)
{
    const int j = ray % star->ij, k = ray / star->ij;
    const bool theta = side == LESS_THETA || side == MORE_THETA, more = side == MORE_THETA || side == MORE_PHI;
    const int at = theta ? j : k, last = (theta ? star->ij : star->ik) - 1,
              step = (more ? 1 : -1) * (theta ? 1 : star->ij);
    if (more ? at < last : at > 0)
        return of_ray(star, coupled[c], ray + step);
    if (star->neighbour[side] == MPI_PROC_NULL)
        return of_ray(star, coupled[c], ray);
    return star->halo[side] + ((theta ? k : j) * COUPLED + c) * NX;
}

/* Matter mixes with that of the rays around. */
static void mix(struct chimera *star, int ray)
{
    for (int c = 0; c < COUPLED; ++c) {
        double *cells = of_ray(star, coupled[c], ray);
        for (int side = 0; side < SIDES; ++side) {
            const double *other = beside(star, c, ray, side);
            for (int i = 0; i < NX; ++i)
                cells[i] += 0.002 * (other[i] - cells[i]);
        }
    }
}

/* Upwind advection along the radius, pressure and gravity. */
static void flow(struct chimera *star, int ray)
{
    const double *dx = whole(star, dx_cf), *x = whole(star, x_cf);
    double *rho = of_ray(star, rho_c, ray), *t = of_ray(star, t_c, ray), *ye = of_ray(star, ye_c, ray);
    double *u = of_ray(star, u_c, ray), *v = of_ray(star, v_c, ray), *w = of_ray(star, w_c, ray);
    double *p = of_ray(star, pMD, ray), *s = of_ray(star, sMD, ray), *g = of_ray(star, grav_x_c, ray);
    double mass = 4e33;
    for (int i = 0; i < NX; ++i) {
        p[i] = 8.3e7 * rho[i] * t[i];
        s[i] = log(t[i] * sqrt(t[i]) / rho[i]);
        mass += 12.566 * x[i] * x[i] * rho[i] * dx[i];
        g[i] = -6.674e-8 * mass / (x[i] * x[i] + 1e14);
    }
    for (int i = NX - 2; i > 0; --i) {
        const double share = u[i] * star->dt_s / dx[i];
        const int from = u[i] < 0 ? i + 1 : i - 1;
        const double swap = fmin(fabs(share), 0.5);
        rho[i] += swap * (rho[from] - rho[i]);
        t[i] += swap * (t[from] - t[i]);
        ye[i] += swap * (ye[from] - ye[i]);
        u[i] += fmax(fmin(star->dt_s * (g[i] - (p[i + 1] - p[i - 1]) / (rho[i] * 2 * dx[i])), 1e7), -1e7);
        u[i] = fmax(fmin(u[i], 1e9), -1e9);
        v[i] = 0.99 * v[i] + 1e-3 * u[i];
        w[i] = 0.99 * w[i] - 1e-3 * u[i];
    }
}

/* Neutrinos of one energy and flavour come to the occupation of the matter, drift outwards, and heat it. */
static void radiate_group(struct chimera *star, int ray, int nu, int e)
{
    const size_t at = (size_t)(nu * NEZ + e) * NX;
    const double *t = of_ray(star, t_c, ray), *rho = of_ray(star, rho_c, ray), *dx = whole(star, dx_cf);
    double *psi0 = of_ray(star, psi0_c, ray) + at, *psi1 = of_ray(star, psi1_e, ray) + at;
    double *left = of_ray(star, dnurad, ray) + at, *heat = of_ray(star, dudt_nu, ray);
    const double energy = 4.0 * pow(1.25, e);
    for (int i = 0; i < NX; ++i) {
        const double there = 1 / (1 + exp(fmin(energy / (8.6e-11 * t[i]), 60)));
        const double opacity = 1e-17 * rho[i] * energy * energy * (1 + nu);
        const double share = 1 - 1 / (1 + opacity * 3e10 * star->dt_s);
        heat[i] += share * (psi0[i] - there) * energy;
        psi0[i] += share * (there - psi0[i]);
        psi1[i] = i > 0 ? (psi0[i - 1] - psi0[i]) / (3 + 3 * opacity * dx[i]) : 0;
        left[i] += psi1[i] * star->dt_s;
    }
    for (int i = NX - 1; i > 0; --i)
        psi0[i] += 0.1 * psi1[i];
}

/* What has passed the edge of the grid, in each group and in all of them. */
static void count_neutrinos(struct chimera *star, int ray)
{
    for (int nu = 0; nu < NNU; ++nu)
        for (int e = 0; e < NEZ; ++e) {
            const int group = nu * NEZ + e;
            const double energy = 4.0 * pow(1.25, e);
            const double *psi0 = of_ray(star, psi0_c, ray) + (size_t)group * NX;
            const double *psi1 = of_ray(star, psi1_e, ray) + (size_t)group * NX;
            const double number = psi1[NX - 1] * energy * energy;
            of_ray(star, nnukrad, ray)[group] += number;
            of_ray(star, unukrad, ray)[group] += number * energy;
            of_ray(star, nu_r, ray)[group] = psi1[NX / 2];
            of_ray(star, nu_rt, ray)[group] += psi1[NX / 2];
            of_ray(star, nu_rho, ray)[group] = psi1[NX / 3];
            of_ray(star, nu_rhot, ray)[group] += psi1[NX / 3];
            of_ray(star, psi0dat, ray)[group] += psi0[0] * star->dt_s;
            of_ray(star, psi1dat, ray)[group] += psi1[1] * star->dt_s;
            of_ray(star, unurad, ray)[nu] += number * energy;
            of_ray(star, nnurad, ray)[nu] += number;
            for (int i = 0; i < NX; ++i) {
                of_ray(star, nnujrad, ray)[nu * NX + i] += psi1[i];
                of_ray(star, unujrad, ray)[nu * NX + i] += psi1[i] * energy;
            }
        }
}

/* Nuclei burn towards the representative heavy one where it is hot. */
static void burn(struct chimera *star, int ray)
{
    const double *t = of_ray(star, t_c, ray), *rho = of_ray(star, rho_c, ray);
    double *nuclei = of_ray(star, xn_c, ray), *rate = of_ray(star, dudt_nuc, ray);
    int32_t *equilibrium = (int32_t *)star->arrays[nse_c] + ray * NX;
    for (int i = 0; i < NX; ++i) {
        const double share = 1 / (1 + exp(fmin(5e10 / t[i], 60)));
        equilibrium[i] = t[i] > 5.5e9;
        rate[i] = 0;
        for (int n = 0; n < NNC - 1; ++n) {
            const double burnt = share * nuclei[n * NX + i];
            nuclei[n * NX + i] -= burnt;
            nuclei[(n + 1) * NX + i] += burnt;
            rate[i] += 1e18 * burnt;
        }
        of_ray(star, uburn_c, ray)[i] += rate[i] * star->dt_s;
        of_ray(star, duesrc, ray)[i] = 1e-6 * rate[i] * star->dt_s;
        of_ray(star, a_nuc_rep_c, ray)[i] = 56 + 20 * log10(1 + 1e-10 * rho[i]);
        of_ray(star, z_nuc_rep_c, ray)[i] = 26 + 8 * log10(1 + 1e-10 * rho[i]);
        of_ray(star, be_nuc_rep_c, ray)[i] = 8.8 * of_ray(star, a_nuc_rep_c, ray)[i];
    }
}

/* Gravity aside of the radius, the lapse, and the neutrino energies that it shifts. */
static void bend(struct chimera *star, int ray)
{
    const double *x = whole(star, x_cf), *g = of_ray(star, grav_x_c, ray);
    double *lapse = of_ray(star, agr_c, ray), *lapse_at_faces = of_ray(star, agr_e, ray);
    for (int i = 0; i < NX; ++i) {
        lapse[i] = sqrt(1 / (1 + 2 * fabs(g[i]) * x[i] / 9e20));
        lapse_at_faces[i] = i > 0 ? 0.5 * (lapse[i - 1] + lapse[i]) : lapse[i];
        of_ray(star, grav_y_c, ray)[i] = 1e-3 * g[i];
        of_ray(star, grav_z_c, ray)[i] = -1e-3 * g[i];
    }
    for (int e = 0; e < NEZ; ++e)
        for (int i = 0; i < NX; ++i) {
            const double energy = 4.0 * pow(1.25, e);
            of_ray(star, unu_c, ray)[e * NX + i] = energy / lapse[i];
            of_ray(star, dunu_c, ray)[e * NX + i] = 0.25 * energy / lapse[i];
            of_ray(star, unue_e, ray)[e * NX + i] = energy / lapse_at_faces[i];
            of_ray(star, dunue_e, ray)[e * NX + i] = 0.25 * energy / lapse_at_faces[i];
        }
}

/* One number of each ray, and of each of its neutrino spheres. */
static void summarize_ray(struct chimera *star, int ray)
{
    const double *x = whole(star, x_cf), *u = of_ray(star, u_c, ray), *rho = of_ray(star, rho_c, ray);
    const double *t = of_ray(star, t_c, ray), *heat = of_ray(star, dudt_nu, ray);
    int shock = 1, core = 0, gain = 0;
    for (int i = 1; i < NX; ++i) {
        shock = u[i] - u[i - 1] < u[shock] - u[shock - 1] ? i : shock;
        core = t[i] > 5.5e9 ? i : core;
        gain = heat[i] > 0 && gain == 0 ? i : gain;
    }
    whole(star, r_shock)[ray] = x[shock];
    whole(star, r_shock_mn)[ray] = x[shock - 1];
    whole(star, r_shock_mx)[ray] = x[shock < NX - 1 ? shock + 1 : shock];
    whole(star, r_nse)[ray] = x[core];
    whole(star, tau_adv)[ray] = (x[shock] - x[gain]) / (fabs(u[shock]) + 1);
    whole(star, tau_heat_nu)[ray] = 1 / (fabs(heat[gain]) + 1e-30);
    whole(star, tau_heat_nuc)[ray] = 1 / (fabs(of_ray(star, dudt_nuc, ray)[core]) + 1e-30);
    whole(star, e_rad)[ray] += u[NX - 1] * rho[NX - 1] * star->dt_s;
    whole(star, elec_rad)[ray] += of_ray(star, ye_c, ray)[NX - 1] * u[NX - 1] * star->dt_s;
    for (int nu = 0; nu < NNU; ++nu) {
        int sphere = NX - 1;
        while (sphere > 0 && rho[sphere] < 1e9 * (1 + nu))
            --sphere;
        of_ray(star, rsphere_mean, ray)[nu] = x[sphere];
        of_ray(star, dsphere_mean, ray)[nu] = rho[sphere];
        of_ray(star, tsphere_mean, ray)[nu] = t[sphere];
        of_ray(star, msphere_mean, ray)[nu] = 4.2 * rho[sphere] * x[sphere] * x[sphere] * x[sphere];
        of_ray(star, esphere_mean, ray)[nu] = 8.6e-11 * t[sphere] * 3.15;
        of_ray(star, r_gain, ray)[nu] = x[gain];
    }
    of_ray(star, r_gain, ray)[NNU] = x[gain];
}

/* Means over the rays of all processes, their energy, and the next time step, which all must keep to. */
static void agree(struct chimera *star)
{
    double *energy = whole(star, e_nu_c_bar), *flux = whole(star, f_nu_e_bar);
    double most[2] = {1e8, 0}; /* speed, density */
    star->energy = 0;
    for (int i = 0; i < NX; ++i)
        energy[i] = flux[i] = 0;
    for (int ray = 0; ray < star->ij * star->ik; ++ray)
        for (int i = 0; i < NX; ++i) {
            const double speed = of_ray(star, u_c, ray)[i], density = of_ray(star, rho_c, ray)[i];
            energy[i] += of_ray(star, psi0_c, ray)[i] / ((double)star->ij_rays * star->ik_rays);
            flux[i] += of_ray(star, psi1_e, ray)[i] / ((double)star->ij_rays * star->ik_rays);
            star->energy += 0.5 * density * speed * speed;
            most[0] = fmax(most[0], fabs(speed));
            most[1] = fmax(most[1], density);
        }
    MPI_Allreduce(MPI_IN_PLACE, energy, NX, MPI_DOUBLE, MPI_SUM, star->plane);
    MPI_Allreduce(MPI_IN_PLACE, flux, NX, MPI_DOUBLE, MPI_SUM, star->plane);
    MPI_Allreduce(MPI_IN_PLACE, &star->energy, 1, MPI_DOUBLE, MPI_SUM, star->plane);
    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, star->plane);
    star->dt_s = fmin(0.2 * whole(star, dx_cf)[0] / most[0], 1e-5);
    star->bounce_s = most[1] > star->densest ? star->time_s : star->bounce_s;
    star->densest = fmax(star->densest, most[1]);
}

static void advance(struct chimera *star)
{
    exchange_halo(star);
    for (int ray = 0; ray < star->ij * star->ik; ++ray) {
        double *heat = of_ray(star, dudt_nu, ray);
        for (int i = 0; i < NX; ++i)
            heat[i] = 0;
        mix(star, ray);
        flow(star, ray);
        for (int nu = 0; nu < NNU; ++nu)
            for (int e = 0; e < NEZ; ++e)
                radiate_group(star, ray, nu, e);
        count_neutrinos(star, ray);
        burn(star, ray);
        bend(star, ray);
        summarize_ray(star, ray);
    }
    agree(star);
    star->time_s += star->dt_s;
    ++star->cycle;
}

/* The calls of the application: the size of the group, its scalars, its arrays. */
static void write_restart(const struct chimera *star)
{
    static const int32_t single = 1;
    const int32_t sizes[] = {NX, NX + 1, NY, NY + 1, NZ, NZ + 1, NEZ, NNU, NNU + 1, NNC};
    const struct {
        const char *name;
        const int32_t *value;
    } counts[] = {{"nx", &sizes[0]},
                  {"nx+1", &sizes[1]},
                  {"ny", &sizes[2]},
                  {"ny+1", &sizes[3]},
                  {"nz", &sizes[4]},
                  {"nz+1", &sizes[5]},
                  {"nez", &sizes[6]},
                  {"nnu", &sizes[7]},
                  {"nnu+1", &sizes[8]},
                  {"nnc", &sizes[9]},
                  {"ij_ray_dim", &star->ij},
                  {"ik_ray_dim", &star->ik},
                  {"ij_rays", &star->ij_rays},
                  {"ik_rays", &star->ik_rays},
                  {"ij_ray_offset", &star->first_j},
                  {"ik_ray_offset", &star->first_k},
                  {"n_proc_y", &star->along_theta},
                  {"n_proc_z", &star->along_phi},
                  {"cycle", &star->cycle},
                  {"nz_hyperslabs", &single},
                  {"my_hyperslab_group", &single},
                  {"nz_hyperslab_width", &sizes[4]}};
    const struct {
        const char *name;
        const double *value;
    } state[] = {
        {"time", &star->time_s}, {"dtime", &star->dt_s}, {"t_bounce", &star->bounce_s}, {"e_total", &star->energy}};
    enum { COUNTS = sizeof counts / sizeof counts[0], STATE = sizeof state / sizeof state[0] };
    uint64_t bytes = COUNTS * sizeof(int32_t) + STATE * sizeof(double);
    for (int a = 0; a < ARRAYS; ++a)
        bytes += (uint64_t)elements_of(star, a) * element_bytes(a);

    const int64_t file = skeleton_open(star->run, "restart.model");
    skeleton_group_size(star->run, file, bytes);
    for (int i = 0; i < COUNTS; ++i)
        skeleton_write(star->run, file, counts[i].name, counts[i].value);
    for (int i = 0; i < STATE; ++i)
        skeleton_write(star->run, file, state[i].name, state[i].value);
    for (int a = 0; a < ARRAYS; ++a)
        skeleton_write(star->run, file, rows[a].name, star->arrays[a]);
    skeleton_close(star->run, file);
}

static void end(struct chimera *star)
{
    for (int a = 0; a < ARRAYS; ++a)
        free(star->arrays[a]);
    for (int s = 0; s < SIDES; ++s)
        free(star->halo[s]);
    free(star->edge);
    MPI_Comm_free(&star->plane);
}

enum { RAYS, CYCLES };

static void play(const struct skeleton_options *options, const int64_t *values)
{
    struct chimera star = {.run = skeleton_start(options, MPI_COMM_WORLD)};
    begin(&star, values[RAYS]);
    while (skeleton_repetition(star.run))
        while (skeleton_step(star.run)) {
            for (int64_t cycle = 0; cycle < values[CYCLES]; ++cycle)
                advance(&star);
            write_restart(&star);
        }
    end(&star);
    skeleton_finish(star.run);
}

static const struct und_kernel kernel = {
    .name = "kernel-chimera",
    .application = "chimera",
    .config = "chimera.xml",
    .options = {[RAYS] = {"rays", 1, 4096, 12, "rays of a process"},
                [CYCLES] = {"cycles", 1, 1000000, 4, "cycles that are computed before each output"}},
    .play = play,
};

#else

static const struct und_kernel kernel = {.name = "kernel-chimera"};

#endif

int main(int argc, char **argv)
{
    return und_kernel_main(argc, argv, &kernel);
}
