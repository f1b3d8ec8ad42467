# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, embedsignature=False
# Written by tools/kernels; not to be edited.

from cpython.buffer cimport (
    PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.string cimport memmove

cdef extern from *:
    """
    #define LL(x) ((long long)(x))
    #define KK_MIN (-9223372036854775807LL - 1)

    static inline long long kk_min(long long a, long long b) { return a < b ? a : b; }
    static inline long long kk_max(long long a, long long b) { return a > b ? a : b; }

    /* As Python divides: towards minus infinity. */
    static inline long long kk_div(long long a, long long b) {
        long long q = a / b;
        return q - ((a % b != 0) & ((a < 0) != (b < 0)));
    }
    static inline long long kk_mod(long long a, long long b) {
        long long r = a % b;
        return r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0);
    }

    #if defined(__x86_64__) && defined(__GNUC__)
    __attribute__((target("sse4.2")))
    static long long kk_crc_native(long long crc, const unsigned char *p) {
        unsigned long long word;
        __builtin_memcpy(&word, p, 8);
        return (long long)__builtin_ia32_crc32di((unsigned long long)crc, word);
    }
    static int kk_has_crc = -1;
    static inline int kk_can_crc(void) {
        if (kk_has_crc < 0) { __builtin_cpu_init(); kk_has_crc = !!__builtin_cpu_supports("sse4.2"); }
        return kk_has_crc;
    }
    #else
    static inline int kk_can_crc(void) { return 0; }
    static long long kk_crc_native(long long crc, const unsigned char *p) { (void)p; return crc; }
    #endif

    /* Keccak-f[1600] after a block of 136 bytes; see dissector/kernel/keccak.py. */
    typedef unsigned long long kk_lane;
    static const kk_lane kk_round[24] = {
        0x0000000000000001ULL, 0x0000000000008082ULL, 0x800000000000808AULL,
        0x8000000080008000ULL, 0x000000000000808BULL, 0x0000000080000001ULL,
        0x8000000080008081ULL, 0x8000000000008009ULL, 0x000000000000008AULL,
        0x0000000000000088ULL, 0x0000000080008009ULL, 0x000000008000000AULL,
        0x000000008000808BULL, 0x800000000000008BULL, 0x8000000000008089ULL,
        0x8000000000008003ULL, 0x8000000000008002ULL, 0x8000000000000080ULL,
        0x000000000000800AULL, 0x800000008000000AULL, 0x8000000080008081ULL,
        0x8000000000008080ULL, 0x0000000080000001ULL, 0x8000000080008008ULL,
    };
    #define KK_ROL(v, n) ((v) << (n) | (v) >> (64 - (n)))
    static void kk_absorb(long long *state, const unsigned char *block) {
        kk_lane a[25], b[25], c[5], d;
        int x, y, round;
        for (x = 0; x < 25; x++) a[x] = (kk_lane)state[x];
        for (x = 0; x < 136; x++) a[x / 8] ^= (kk_lane)block[x] << 8 * (x % 8);
        for (round = 0; round < 24; round++) {
            for (x = 0; x < 5; x++) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
            for (x = 0; x < 5; x++) {
                d = c[(x + 4) % 5] ^ KK_ROL(c[(x + 1) % 5], 1);
                for (y = 0; y < 25; y += 5) a[x + y] ^= d;
            }
            b[0] = a[0];
            b[10] = KK_ROL(a[1], 1); b[7] = KK_ROL(a[10], 3); b[11] = KK_ROL(a[7], 6);
            b[17] = KK_ROL(a[11], 10); b[18] = KK_ROL(a[17], 15); b[3] = KK_ROL(a[18], 21);
            b[5] = KK_ROL(a[3], 28); b[16] = KK_ROL(a[5], 36); b[8] = KK_ROL(a[16], 45);
            b[21] = KK_ROL(a[8], 55); b[24] = KK_ROL(a[21], 2); b[4] = KK_ROL(a[24], 14);
            b[15] = KK_ROL(a[4], 27); b[23] = KK_ROL(a[15], 41); b[19] = KK_ROL(a[23], 56);
            b[13] = KK_ROL(a[19], 8); b[12] = KK_ROL(a[13], 25); b[2] = KK_ROL(a[12], 43);
            b[20] = KK_ROL(a[2], 62); b[14] = KK_ROL(a[20], 18); b[22] = KK_ROL(a[14], 39);
            b[9] = KK_ROL(a[22], 61); b[6] = KK_ROL(a[9], 20); b[1] = KK_ROL(a[6], 44);
            for (y = 0; y < 25; y += 5)
                for (x = 0; x < 5; x++) a[x + y] = b[x + y] ^ (~b[(x + 1) % 5 + y] & b[(x + 2) % 5 + y]);
            a[0] ^= kk_round[round];
        }
        for (x = 0; x < 25; x++) state[x] = (long long)a[x];
    }

    #ifdef KK_CHECKED
    static __thread long long kk_bad_line = 0;
    static inline long long kk_at(long long i, long long n, long long line) {
        if (i < 0 || i >= n) { if (!kk_bad_line) kk_bad_line = line; return 0; }
        return i;
    }
    static inline long long kk_range(long long i, long long count, long long n, long long line) {
        if (count < 0 || i < 0 || i + count > n) { if (!kk_bad_line) kk_bad_line = line; return 0; }
        return count;
    }
    #else
    #define kk_bad_line 0
    #define kk_at(i, n, line) (i)
    #define kk_range(i, count, n, line) (count)
    #endif
    static inline long long kk_first_bad_line(void) { return kk_bad_line; }
    static inline void kk_reset(void) {
    #ifdef KK_CHECKED
        kk_bad_line = 0;
    #endif
    }
    """
    const long long KK_MIN
    long long LL(long long) noexcept nogil
    long long kk_min(long long, long long) noexcept nogil
    long long kk_max(long long, long long) noexcept nogil
    long long kk_div(long long, long long) noexcept nogil
    long long kk_mod(long long, long long) noexcept nogil
    long long kk_at(long long, long long, long long) noexcept nogil
    long long kk_range(long long, long long, long long, long long) noexcept nogil
    long long kk_crc_native(long long, const unsigned char*) noexcept nogil
    bint kk_can_crc() noexcept nogil
    void kk_absorb(long long*, const unsigned char*) noexcept nogil
    long long kk_first_bad_line() noexcept nogil
    void kk_reset() noexcept nogil


cdef dict kk_known = {}


cdef int kk_fill(Py_buffer* view, object array, bint writes, str codes, int ndim, str where) except -1:
    """
    Take the buffer of an argument, if it is an array of the right type.

    To spell the format of rows takes longer than many a kernel: each type is compared once.
    """
    cdef int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (PyBUF_WRITABLE if writes else 0)
    cdef bint is_table = codes[:1] == "T"
    dtype = getattr(array, "dtype", None) if is_table else None
    cdef bint is_known = dtype is not None and kk_known.get(codes) is dtype
    if is_known:
        flags &= ~PyBUF_FORMAT
    try:
        PyObject_GetBuffer(array, view, flags)
    except (BufferError, TypeError, ValueError) as error:
        raise TypeError(f"{where}: {error}") from None
    if is_known and view.ndim == ndim:
        return 0
    code = view.format.decode("latin1").replace("q", "l") if view.format != NULL else "B"
    is_right = code == codes if is_table else code in codes
    if view.ndim != ndim or not is_right:
        got = f"{view.ndim} dimensions of {code!r}"
        PyBuffer_Release(view)
        what = "rows" if is_table else repr(codes[0])
        raise TypeError(f"{where} takes {ndim} dimensions of {what}, not {got}")
    if dtype is not None:
        kk_known[codes] = dtype
    return 0


cdef void kk_release(Py_buffer* views, int count) noexcept:
    for i in range(count):
        PyBuffer_Release(&views[i])


cdef int kk_check(str where) except -1:
    """Raise the error of an index outside its array; only a checked build notices one."""
    line = kk_first_bad_line()
    kk_reset()
    if line:
        raise IndexError(f"{where}: an index is outside its array, line {line}")
    return 0
