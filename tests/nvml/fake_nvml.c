/* A libnvidia-ml.so.1 that says what a text file says.
 *
 * The file (environment FAKE_NVML_STATE) is read anew by every call, so the world can change while
 * a probe runs. A line is `key value`; the first key that is there wins, from the most exact on:
 *   gpu.3.link.5.field.165   gpu.3.link.*.field.165   gpu.*.link.5.field.165   gpu.*.link.*.field.165
 *   gpu.3.power              gpu.*.power
 *   count   driver   init
 * Beside a key may stand KEY.return (an NVML return code instead of success), KEY.delay (seconds),
 * KEY.hang (stops for ever), KEY.block (writes to that path: a frozen file system makes it
 * uninterruptible) and KEY.crash. A key that nowhere stands is NVML_ERROR_NOT_SUPPORTED.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;
enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, VERSION = 25 };

typedef struct {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
} nvmlPciInfo_t;
typedef union {
  double dVal;
  unsigned uiVal;
  unsigned long ulVal;
  unsigned long long ullVal;
  long long sllVal;
  int siVal;
  unsigned short usVal;
} nvmlValue_t;
typedef struct {
  unsigned fieldId, scopeId;
  long long timestamp, latencyUsec;
  unsigned valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
} nvmlFieldValue_t;
typedef struct { unsigned version; int marginTemperature; } nvmlMarginTemperature_v1_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct { unsigned max, high, partial, low, none; } nvmlRowRemapperHistogramValues_t;
typedef struct {
  unsigned version;
  unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
      volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm,
      aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther;
  unsigned bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;
typedef struct { unsigned version, bChannelRepairPending, bTpcRepairPending; } nvmlRepairStatus_t;
typedef struct { unsigned version, unrepairableMemory; } nvmlUnrepairableMemory_v1_t;
typedef struct {
  unsigned version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId, state, healthMask;
} nvmlGpuFabricInfo_v2_t;
typedef struct {
  unsigned version;
  unsigned char clusterUuid[16];
  nvmlReturn_t status;
  unsigned cliqueId, state, healthMask;
  unsigned char healthSummary;
} nvmlGpuFabricInfo_v3_t;
typedef struct {
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_v2_t;

/* The state. */

static char *read_state(void) {
  const char *path = getenv("FAKE_NVML_STATE");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return NULL;
  size_t size = 0, room = 1 << 16;
  char *text = malloc(room);
  ssize_t got;
  while ((got = read(file, text + size, room - size - 1)) > 0) {
    size += (size_t)got;
    if (room - size < 2) text = realloc(text, room *= 2);
  }
  close(file);
  text[size] = 0;
  return text;
}

static int exact(const char *text, const char *key, char *value, size_t room) {
  size_t length = strlen(key);
  for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, key, length) || (line[length] != ' ' && line[length] != '\n')) continue;
    const char *start = line[length] == ' ' ? line + length + 1 : line + length;
    size_t end = strcspn(start, "\n");
    snprintf(value, room, "%.*s", (int)end, start);
    return 1;
  }
  return 0;
}

static int find(const char *text, int gpu, int link, const char *name, char *value, size_t room) {
  char key[160], g[2][16] = {"", "*"}, l[2][16] = {"", "*"};
  snprintf(g[0], sizeof g[0], "%d", gpu);
  snprintf(l[0], sizeof l[0], "%d", link);
  if (gpu < 0) return exact(text, name, value, room);
  for (int a = 0; a < 2; a++)
    for (int b = 0; b < (link < 0 ? 1 : 2); b++) {
      if (link < 0) snprintf(key, sizeof key, "gpu.%s.%s", g[a], name);
      else snprintf(key, sizeof key, "gpu.%s.link.%s.%s", g[a], l[b], name);
      if (exact(text, key, value, room)) return 1;
    }
  return 0;
}

static void block(const char *path) {
  int file = open(path, O_WRONLY | O_CREAT, 0600);
  if (file >= 0 && write(file, "x", 1) == 1) fsync(file);
}

/* Whether KEY.suffix is there; most states say nothing of a kind, and then that costs one look. */
static int beside(const char *text, int gpu, int link, const char *name, const char *suffix, char *said, size_t room) {
  char key[120];
  if (!strstr(text, suffix)) return 0;
  snprintf(key, sizeof key, "%s%s", name, suffix);
  return find(text, gpu, link, key, said, room);
}

/* Behave as the state says of this key, then give its value. */
static nvmlReturn_t ask(const char *text, int gpu, int link, const char *name, char *value, size_t room) {
  char said[256];
  if (!text) return NOT_SUPPORTED;
  if (beside(text, gpu, link, name, ".crash", said, sizeof said)) abort();
  if (beside(text, gpu, link, name, ".block", said, sizeof said)) block(said);
  if (beside(text, gpu, link, name, ".hang", said, sizeof said)) for (;;) pause();
  if (beside(text, gpu, link, name, ".delay", said, sizeof said)) usleep((useconds_t)(atof(said) * 1e6));
  if (beside(text, gpu, link, name, ".return", said, sizeof said) && atoi(said)) return atoi(said);
  return find(text, gpu, link, name, value, room) ? SUCCESS : NOT_SUPPORTED;
}

static nvmlReturn_t values(nvmlDevice_t device, const char *name, char *value, size_t room) {
  char *text = read_state();
  nvmlReturn_t code = ask(text, (int)(size_t)device - 1, -1, name, value, room);
  free(text);
  return code;
}

static nvmlReturn_t numbers(nvmlDevice_t device, const char *name, unsigned long long *into, int wanted) {
  char value[4096], *rest = value;
  nvmlReturn_t code = values(device, name, value, sizeof value);
  for (int n = 0; code == SUCCESS && n < wanted; n++) into[n] = (unsigned long long)strtoll(rest, &rest, 0);
  return code;
}

static nvmlReturn_t number(nvmlDevice_t device, const char *name, unsigned *into) {
  unsigned long long said = 0;
  nvmlReturn_t code = numbers(device, name, &said, 1);
  if (code == SUCCESS) *into = (unsigned)said;
  return code;
}

static nvmlReturn_t two(nvmlDevice_t device, const char *name, unsigned *a, unsigned *b) {
  unsigned long long said[2] = {0, 0};
  nvmlReturn_t code = numbers(device, name, said, 2);
  if (code == SUCCESS) *a = (unsigned)said[0], *b = (unsigned)said[1];
  return code;
}

/* The library. */

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
  unsigned ignored;
  (void)flags;
  nvmlReturn_t code = number(NULL, "init", &ignored);
  return code == NOT_SUPPORTED ? SUCCESS : code;
}
nvmlReturn_t nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t code) { return code ? "a fake's refusal" : "Success"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
  return values(NULL, "driver", version, length);
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) { return number(NULL, "count", count); }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
  char said[64];
  *device = (nvmlDevice_t)(size_t)(index + 1);
  nvmlReturn_t code = values(*device, "handle", said, sizeof said);
  return code == NOT_SUPPORTED ? SUCCESS : code;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info) {
  memset(info, 0, sizeof *info);
  return values(device, "pci", info->busId, sizeof info->busId);
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor) { return number(device, "minor", minor); }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, unsigned *v) { return number(d, "persistence", v); }
nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, unsigned *a, unsigned *b) { return two(d, "ecc_mode", a, b); }
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *a, unsigned *b) { return two(d, "mig_mode", a, b); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned *v) { return number(d, "width", v); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned *v) { return number(d, "width_limit", v); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned *v) { return number(d, "generation", v); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned *v) { return number(d, "generation_limit", v); }
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t d, unsigned *v) { return number(d, "gpu_generation_limit", v); }
nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t d, unsigned *v) { return number(d, "performance_state", v); }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *v) { return number(d, "power", v); }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *v) { return number(d, "power_limit", v); }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int type, unsigned *v) {
  (void)type;
  return number(d, "sm_clock", v);
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, int type, unsigned *v) {
  (void)type;
  return number(d, "sm_clock_limit", v);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *v) {
  return numbers(d, "clock_events", v, 1);
}
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_v1_t *margin) {
  if (margin->version != 0x1000008) return VERSION;
  return number(device, "margin", (unsigned *)&margin->marginTemperature);
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
  rates->memory = 0;
  return number(device, "utilization", &rates->gpu);
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
  nvmlReturn_t code = numbers(device, "memory_total", &memory->total, 1);
  if (code == SUCCESS) code = numbers(device, "memory_used", &memory->used, 1);
  memory->free = memory->total - memory->used;
  return code;
}
nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *rows) {
  memset(rows, 0, sizeof *rows);
  return number(device, "banks_exhausted", &rows->none);
}
nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_v1_t *status) {
  if (status->version != 0x1000068) return VERSION;
  return number(device, "sram_threshold", &status->bThresholdExceeded);
}
nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status) {
  return two(device, "repair_pending", &status->bChannelRepairPending, &status->bTpcRepairPending);
}
nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device, nvmlUnrepairableMemory_v1_t *flag) {
  return number(device, "unrepairable", &flag->unrepairableMemory);
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info) {
  unsigned long long said[4] = {0, 0, 0, 0};
  unsigned oldest = 0;
  if (number(device, "fabric_version", &oldest) == SUCCESS && info->version >> 24 > oldest) return VERSION;
  nvmlReturn_t code = numbers(device, "fabric", said, 4);
  info->state = (unsigned)said[0], info->status = (nvmlReturn_t)said[1], info->healthMask = (unsigned)said[2];
  if (info->version >> 24 >= 3) info->healthSummary = (unsigned char)said[3];
  return code;
}
static nvmlReturn_t processes(nvmlDevice_t device, const char *name, unsigned *count, nvmlProcessInfo_v2_t *into) {
  char value[4096], *rest = value, *next;
  unsigned found = 0, room = *count;
  nvmlReturn_t code = values(device, name, value, sizeof value);
  if (code != SUCCESS) return code;
  for (;; rest = next, found++) {
    unsigned pid = (unsigned)strtoul(rest, &next, 10);
    if (next == rest) break;
    if (into && found < room) memset(&into[found], 0, sizeof *into), into[found].pid = pid;
  }
  *count = found;
  return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *into) {
  return processes(device, "processes", count, into);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *into) {
  return processes(device, "graphics", count, into);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *into) {
  return processes(device, "mps", count, into);
}
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
  char *text = read_state(), name[32], value[64];
  int gpu = (int)(size_t)device - 1;
  nvmlReturn_t code = ask(text, gpu, -1, "fields", value, sizeof value);
  for (int n = 0; (code == SUCCESS || code == NOT_SUPPORTED) && n < count; n++) {
    int number_ = (int)fields[n].fieldId;
    int of_link = (number_ >= 161 && number_ <= 168) || (number_ >= 201 && number_ <= 222) || number_ == 171;
    snprintf(name, sizeof name, "field.%d", number_);
    fields[n].nvmlReturn = ask(text, gpu, of_link ? (int)fields[n].scopeId : -1, name, value, sizeof value);
    fields[n].valueType = strchr(value, '.') ? 0 : 3;
    if (fields[n].nvmlReturn != SUCCESS) continue;
    if (fields[n].valueType == 0) fields[n].value.dVal = atof(value);
    else fields[n].value.ullVal = strtoull(value, NULL, 0);
  }
  free(text);
  return code == NOT_SUPPORTED ? SUCCESS : code;
}

/* The layout of every struct above, for comparison with the binding: `struct.field offset`. */
#define SIZE(type) #type " %zu\n"
#define AT(type, member) #type "." #member " %zu\n"
const char *fake_nvml_layout(void) {
  static char text[4096];
  snprintf(text, sizeof text,
    SIZE(nvmlPciInfo_t) AT(nvmlPciInfo_t, busId)
    SIZE(c_nvmlFieldValue_t) AT(c_nvmlFieldValue_t, nvmlReturn) AT(c_nvmlFieldValue_t, value)
    SIZE(c_nvmlMarginTemperature_v1_t) AT(c_nvmlMarginTemperature_v1_t, marginTemperature)
    SIZE(c_nvmlUtilization_t) SIZE(c_nvmlMemory_t) AT(c_nvmlMemory_t, used)
    SIZE(c_nvmlRowRemapperHistogramValues) AT(c_nvmlRowRemapperHistogramValues, none)
    SIZE(c_nvmlEccSramErrorStatus_v1_t) AT(c_nvmlEccSramErrorStatus_v1_t, bThresholdExceeded)
    SIZE(c_nvmlRepairStatus_t) SIZE(c_nvmlUnrepairableMemory_v1_t)
    SIZE(c_nvmlGpuFabricInfo_v2_t) AT(c_nvmlGpuFabricInfo_v2_t, healthMask)
    SIZE(c_nvmlGpuFabricInfo_v3_t) AT(c_nvmlGpuFabricInfo_v3_t, healthSummary)
    SIZE(c_nvmlProcessInfo_v2_t) AT(c_nvmlProcessInfo_v2_t, usedGpuMemory),
    sizeof(nvmlPciInfo_t), offsetof(nvmlPciInfo_t, busId),
    sizeof(nvmlFieldValue_t), offsetof(nvmlFieldValue_t, nvmlReturn), offsetof(nvmlFieldValue_t, value),
    sizeof(nvmlMarginTemperature_v1_t), offsetof(nvmlMarginTemperature_v1_t, marginTemperature),
    sizeof(nvmlUtilization_t), sizeof(nvmlMemory_t), offsetof(nvmlMemory_t, used),
    sizeof(nvmlRowRemapperHistogramValues_t), offsetof(nvmlRowRemapperHistogramValues_t, none),
    sizeof(nvmlEccSramErrorStatus_v1_t), offsetof(nvmlEccSramErrorStatus_v1_t, bThresholdExceeded),
    sizeof(nvmlRepairStatus_t), sizeof(nvmlUnrepairableMemory_v1_t),
    sizeof(nvmlGpuFabricInfo_v2_t), offsetof(nvmlGpuFabricInfo_v2_t, healthMask),
    sizeof(nvmlGpuFabricInfo_v3_t), offsetof(nvmlGpuFabricInfo_v3_t, healthSummary),
    sizeof(nvmlProcessInfo_v2_t), offsetof(nvmlProcessInfo_v2_t, usedGpuMemory));
  return text;
}
