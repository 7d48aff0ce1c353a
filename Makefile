# make            the program (build/taut) and the library
# make check      builds and runs every test; SAN=1 with ASan and UBSan; ONLY=module/ a part; GDB=1 for a debugger
# make check-other  some of them on another processor, emulated
# make demo       a transformer on images: trained under a bound, proved, checked, attacked, shown on a page
# make demo-text  the same for a GPT, on TEXT=FILE or built-in text; make demo-forecast: for time series
# make CUDA=1     and build/libtaut_cuda.so, the kernels for a GPU, by nvcc
# make MPI=1      and build/libtaut_mpi.so, so that mpirun can train on several processes, by mpicc
# make check KERNELS=cuda    the tests that take any table, on a device (cuda64: in double); without one they are skipped
# make check-emulated  those of the kernels and architectures on the host, where no device is: the device's own sources as C++, a
#                 twentieth of the random cases; RACES=1 looks for races of threads, EMULATE_SEED=N shuffles who goes first
# make STRICT=1  stops at a warning, as lint does; the default build never does
# make lint       layers, lengths, formatting, cppcheck, clang, functions nobody calls
# make abi        what programs that were linked rely on, against include/taut.abi; abi-write stores it
# make fuzz       every reader under libFuzzer, SECONDS=60 each
# make coverage   the tests again, and how many lines of src/ they run
# make bench      the figures we claim, peers beside us
# make install    PREFIX=/usr/local DESTDIR=
CC       ?= gcc
AR       ?= ar
PREFIX   ?= /usr/local
BUILD    ?= build$(if $(SAN),/san)$(if $(GDB),/gdb)
PKG      ?= pkg-config
VERSION  := $(shell sed -n 's/^#define TAUT_VERSION *"\(.*\)"/\1/p' include/taut.h)
# Programs that were linked go on working with the same soname: below 1.0 the minor version may break them, then the major one.
SONAME   := libtaut.so.$(shell echo $(VERSION) | sed 's/^\(0\.[0-9]*\).*/\1/; t; s/\..*//')
OBJCOPY  ?= $(shell $(CC) -print-prog-name=objcopy)
ARCH     := $(shell $(CC) -dumpmachine | cut -d- -f1)

WARN     := -Wall -Wextra -Wpedantic $(if $(STRICT),-Werror)
CFLAGS   ?= -O3 -g
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -fPIC -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=off \
             -fvisibility=hidden $(WARN) -Iinclude $(INSIDE) $(DEP_CFLAGS) $(CFLAGS) $(OWN_CFLAGS)
INSIDE    = -Isrc
ifdef SAN
CFLAGS   := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
HOT      := -O3 # where most of the time goes: the cpu kernels, and the hash of files and data
endif

# FLINT 3 has Arb inside; before, Arb was a library of its own.
DEP_CFLAGS := $(shell $(PKG) --cflags openblas libcjson inih 2>/dev/null)
ARB        := $(shell printf '\043include <flint/arb.h>\n' | $(CC) -E - >/dev/null 2>&1 && echo -lflint || echo -lflint-arb -lflint)
LIBS       := $(shell $(PKG) --libs openblas libcjson inih 2>/dev/null || echo -lopenblas -lcjson -linih) -lkissfft-float $(ARB) -lunistring -lpng -lturbojpeg -lz -lm -ldl

# The cpu kernels are built once for each instruction set worth having; the best is chosen at run time.
CPU_base   := -ffp-contract=fast
CPU_v3     := -ffp-contract=fast -march=x86-64-v3 -mtune=generic
CPU_v4     := -ffp-contract=fast -march=x86-64-v4 -mprefer-vector-width=512 -mtune=generic
VARIANTS   := base $(if $(filter x86_64,$(ARCH)),v3 v4)

# The cuda kernels are one library, opened when they are asked for; its objects do not depend on how the rest is built.
NVCC       ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc) nvcc)
CUDA       ?= $(if $(filter cuda%,$(KERNELS)),1)
CUDA_ARCH  ?= 90
CUDA_FLAGS := -std=c++20 -O3 -Xcompiler -fPIC,-Wall,-fvisibility=hidden -Isrc -Iinclude \
              $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$a,code=sm_$a) \
              -gencode arch=compute_$(lastword $(CUDA_ARCH)),code=compute_$(lastword $(CUDA_ARCH))
CUDA_f32   := -DTAUT_VARIANT=cuda -DTAUT_ELEMENT=float
CUDA_f64   := -DTAUT_VARIANT=cuda64 -DTAUT_ELEMENT=double
CUDA_ONCE  := device lowered products between
CUDA_WIDE  := far
CUDA_TWICE := $(filter-out $(CUDA_ONCE) $(CUDA_WIDE),$(patsubst src/kernels/cuda/%.cu,%,$(wildcard src/kernels/cuda/*.cu)))
CUDA_OBJ   := $(CUDA_ONCE:%=build/cuda/once/%.o) $(CUDA_TWICE:%=build/cuda/f32/%.o) $(CUDA_TWICE:%=build/cuda/f64/%.o) \
              $(CUDA_WIDE:%=build/cuda/f64/%.o)
# A sum over what says what a table is and over the library's own files: program and library must have been built from the same.
TABLE_OF   := src/kernels/kernels.h src/kernels/slots.def src/kernels/library.h src/base/far.h src/base/status.h src/tensor/tensor.h $(wildcard src/kernels/cuda/*)
TABLE      := -DTAUT_TABLE=$(shell cat $(TABLE_OF) | cksum | cut -d' ' -f1)ul

# Messages between the ranks of a training: one library, opened when there are several.
MPICC      ?= mpicc

SRC      := $(filter-out src/kernels/cpu/% src/base/mpi/%,$(wildcard src/*/*.c src/*/*/*.c))
CPU_SRC  := $(wildcard src/kernels/cpu/*.c)
OBJ      := $(SRC:%.c=$(BUILD)/%.o) \
            $(foreach v,$(VARIANTS),$(CPU_SRC:src/kernels/cpu/%.c=$(BUILD)/src/kernels/cpu/$v/%.o))
PROGRAM  := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cli/*.c papers/*.c papers/*/*.c bench/*.c))
TESTS    := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/t_*.c))
SCRIPTS  := $(wildcard tests/*/t_*.sh)

.PHONY: all check check-other check-emulated coverage demo demo-text demo-forecast fuzz lint abi abi-write bench install clean deps format
all: $(BUILD)/taut $(BUILD)/libtaut.so $(BUILD)/libtaut.a $(BUILD)/taut.pc $(if $(CUDA),$(BUILD)/libtaut_cuda.so) $(if $(MPI),$(BUILD)/libtaut_mpi.so)

# The inside, for the program and the tests.  Both libraries are made of the same objects, but show only what taut.h declares
# (TAUT_API): the shared one because all else is hidden, the static one because it is a single object in which all else is local.
$(BUILD)/inside.a: $(OBJ)
	@echo "  lib   $@"
	@rm -f $@ && $(AR) rcsT $@ $^
$(BUILD)/taut: $(PROGRAM) $(BUILD)/inside.a
	@echo "  link  $@"
	@$(CC) $(ALL_CFLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib' -o $@ $^ $(LIBS)
$(BUILD)/libtaut.a: $(OBJ)
	@echo "  lib   $@"
	@$(CC) -r -nostdlib -o $(BUILD)/libtaut.o $^ && $(OBJCOPY) --localize-hidden $(BUILD)/libtaut.o
	@rm -f $@ && $(AR) rcs $@ $(BUILD)/libtaut.o
$(BUILD)/libtaut.so: $(OBJ)
	@echo "  lib   $@"
	@$(CC) $(ALL_CFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(LIBS)
	@ln -sf libtaut.so $(@D)/$(SONAME)
$(BUILD)/taut.pc: tools/taut.pc.in Makefile include/taut.h
	@mkdir -p $(@D) && sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' $< > $@

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	@echo "  cc    $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
# What single folders need; a variable of its own, since CFLAGS on make's command line would win over additions here.
$(BUILD)/src/kernels/library.o: OWN_CFLAGS = $(TABLE)
$(BUILD)/src/kernels/library.o build/cuda/once/device.o: $(TABLE_OF)
$(BUILD)/src/base/sha256.o: OWN_CFLAGS = $(HOT)
$(BUILD)/src/check/%.o $(BUILD)/src/bound/local.o $(BUILD)/src/bound/local_%.o $(BUILD)/tests/check/%.o: OWN_CFLAGS = -frounding-math
$(BUILD)/papers/%.o $(BUILD)/bench/%.o: OWN_CFLAGS = -I.
$(BUILD)/cli/%.o: INSIDE = # the commands see taut.h and nothing of src/
define variant
$(BUILD)/src/kernels/cpu/$1/%.o: src/kernels/cpu/%.c Makefile
	@mkdir -p $$(@D)
	@echo "  cc    $$< ($1)"
	@$$(CC) $$(ALL_CFLAGS) $$(CPU_$1) $$(HOT) -DTAUT_VARIANT=$1 -MMD -MP -c -o $$@ $$<
endef
$(foreach v,$(VARIANTS),$(eval $(call variant,$v)))

$(BUILD)/libtaut_mpi.so: src/base/mpi/mpi.c src/base/mpi/pulse.c src/base/mpi/pulse.h src/base/ranks.h Makefile
	@command -v $(MPICC) >/dev/null || { echo "make MPI=1 needs $(MPICC): tools/deps mpi installs Open MPI"; exit 1; }
	@echo "  lib   $@"
	@$(MPICC) $(ALL_CFLAGS) -shared -o $@ $(filter %.c,$^)
$(BUILD)/libtaut_cuda.so: build/cuda/libtaut_cuda.so
	@cp $< $@
build/cuda/libtaut_cuda.so: $(CUDA_OBJ)
	@echo "  lib   $@"
	@$(NVCC) -shared -o $@ $^ -lcublasLt -ldl
build/cuda/once/%.o: src/kernels/cuda/%.cu Makefile
	@mkdir -p $(@D)
	@echo "  nvcc  $<"
	@$(NVCC) $(CUDA_FLAGS) $(TABLE) -MMD -MP -c -o $@ $<
define cuda_variant
build/cuda/$1/%.o: src/kernels/cuda/%.cu Makefile
	@mkdir -p $$(@D)
	@echo "  nvcc  $$< ($1)"
	@$$(NVCC) $$(CUDA_FLAGS) $$(CUDA_$1) -MMD -MP -c -o $$@ $$<
endef
$(foreach v,f32 f64,$(eval $(call cuda_variant,$v)))

$(BUILD)/tests/%.o: tests/%.c Makefile
	@mkdir -p $(@D)
	@echo "  test  $<"
	@$(CC) $(ALL_CFLAGS) -Itests -MMD -MP -c -o $@ $<
# Tests are many: they are linked without what only a debugger reads (GDB=1 keeps it, so does SAN=1), and by gold where the
# compiler has it, in a quarter of the time.
GOLD      := $(shell $(CC) -fuse-ld=gold -Wl,--version >/dev/null 2>&1 && echo -fuse-ld=gold)
TEST_LINK := $(if $(SAN)$(GDB),,-Wl,--strip-debug $(GOLD))
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/inside.a
	@$(CC) $(ALL_CFLAGS) $(TEST_LINK) -Wl,-rpath,'$$ORIGIN/../..' -o $@ $< $(BUILD)/inside.a $(LIBS)
.SECONDARY: $(TESTS:%=%.o)

deps:
	@tools/deps

# The tests that take the table which KERNELS names.
ANY_TABLE = /kernels/ golden/t_bert golden/t_gpt golden/t_muon train/t_specformer verdict/t_ahead cli/t_kernels

# Each README command does everything by itself: first what is missing, then the work, on all processors unless told otherwise.
PARALLEL = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
check: deps
	@tools/deps data || echo "no Fashion-MNIST: the tests that read it are skipped"
	@tools/deps browser || echo "no browser: nobody will look at the report's pages"
	@tools/deps python || echo "no Python with NumPy and pytest: the tests of the package are skipped"
	@tools/deps mpi || echo "no Open MPI: the test of several ranks is skipped"
	@$(MAKE) --no-print-directory $(PARALLEL) all tests $$(command -v $(MPICC) >/dev/null && echo MPI=1)
	@BUILD=$(BUILD) TAUT_KERNELS=$(KERNELS) tools/run_tests $(or $(ONLY),$(if $(KERNELS),$(ANY_TABLE)))
.PHONY: tests
tests: $(TESTS)
check-other: deps
	@tools/check_other

# The device's sources where there is none: C++ is made of them (tests/emulate), one object of each element's, so that names which
# both have stay apart.  cuBLASLt is one of our own there, and nothing is said between ranks.
EMULATED := build/cuda/emulated$(if $(RACES),/races)
RACED    := $(if $(RACES),-g -fsanitize=thread --param=tsan-instrument-func-entry-exit=0)
EMULATE  := -std=c++20 -O3 -fPIC -fno-strict-aliasing -ffp-contract=off -fvisibility=hidden -U_FORTIFY_SOURCE -w -MMD -MP \
            -Itests/emulate -I$(EMULATED) -Isrc -Iinclude
EMULATION := $(patsubst tests/emulate/%.cpp,$(EMULATED)/%.o,$(wildcard tests/emulate/*.cpp))
check-emulated: deps
	@tools/deps emulated
	@$(MAKE) --no-print-directory $(PARALLEL) all tests $(EMULATED)/libtaut_cuda.so
	@TAUT_KERNELS=cuda LD_LIBRARY_PATH=$(EMULATED) $(BUILD)/tests/kernels/t_memory # which would be skipped without the library
	@for k in cuda cuda64; do BUILD=$(BUILD) TAUT_KERNELS=$$k LD_LIBRARY_PATH=$(EMULATED) TAUT_EFFORT=$${TAUT_EFFORT:-0.05} \
	    tools/run_tests $(or $(ONLY),$(filter-out cli/%,$(ANY_TABLE))) || exit 1; done
$(EMULATED)/libtaut_cuda.so: $(EMULATION) $(EMULATED)/device.o $(EMULATED)/lowered.o $(EMULATED)/products.o $(EMULATED)/f32.o $(EMULATED)/f64.o
	@echo "  lib   $@"
	@$(CXX) -shared -o $@ $^
$(EMULATED)/f32.o: $(CUDA_TWICE:%=$(EMULATED)/f32/%.o)
$(EMULATED)/f64.o: $(CUDA_TWICE:%=$(EMULATED)/f64/%.o) $(CUDA_WIDE:%=$(EMULATED)/f64/%.o)
$(EMULATED)/f32.o $(EMULATED)/f64.o:
	@$(CXX) -r -nostdlib -Wl,--force-group-allocation -o $@ $^
	@$(OBJCOPY) --keep-global-symbol=taut_cuda_table --keep-global-symbol=taut_cuda64_table --keep-global-symbol=taut_cuda_far $@
$(EMULATED)/translated: tests/emulate/translate $(TABLE_OF) Makefile
	@mkdir -p $(EMULATED)/kernels/cuda $(EMULATED)/f32 $(EMULATED)/f64
	@tests/emulate/translate src/kernels/cuda/* $(EMULATED)/kernels/cuda && touch $@
$(EMULATED)/device.o $(EMULATED)/lowered.o $(EMULATED)/products.o: $(EMULATED)/%.o: $(EMULATED)/translated
	@$(CXX) $(EMULATE) $(TABLE) -x c++ -c -o $@ $(EMULATED)/kernels/cuda/$*.cu
$(EMULATION): $(EMULATED)/%.o: tests/emulate/%.cpp $(EMULATED)/translated
	@$(CXX) $(EMULATE) -c -o $@ $<
define emulated
$(EMULATED)/$1/%.o: src/kernels/cuda/%.cu $(EMULATED)/translated
	@echo "  c++   src/kernels/cuda/$$*.cu ($1)"
	@$$(CXX) $(EMULATE) $(RACED) $(CUDA_$1) -x c++ -c -o $$@ $(EMULATED)/kernels/cuda/$$*.cu
endef
$(foreach v,f32 f64,$(eval $(call emulated,$v)))

# libFuzzer lives in clang; each reader starts from its own seeds.  Looking for leaks after every input takes nine tenths of the
# time, so all inputs that were kept are read once more and leaks are looked for at the end.
SECONDS  ?= 60
FUZZ     := $(patsubst tests/fuzz/t_%.c,%,$(wildcard tests/fuzz/t_*.c))
fuzz:
	@tools/deps lint
	@$(MAKE) --no-print-directory CC=clang BUILD=build/fuzz CFLAGS="-O1 -g -fsanitize=address,undefined,fuzzer-no-link -DTAUT_LIBFUZZER -Wno-pass-failed" $(FUZZ:%=build/fuzz/fuzz_%)
	@for f in $(FUZZ); do mkdir -p build/fuzz/corpus/$$f; echo "  fuzz  $$f"; \
	    (FUZZ_CORPUS=build/fuzz/corpus/$$f build/fuzz/fuzz_$$f -runs=0 && \
	    build/fuzz/fuzz_$$f -max_total_time=$(SECONDS) -detect_leaks=0 -artifact_prefix=build/fuzz/ -print_final_stats=1 build/fuzz/corpus/$$f && \
	    ASAN_OPTIONS=detect_leaks=1 build/fuzz/fuzz_$$f -detect_leaks=0 -runs=0 build/fuzz/corpus/$$f) >build/fuzz/$$f.log 2>&1 \
	    || { tail -n 30 build/fuzz/$$f.log; exit 1; }; \
	    grep -h 'DONE ' build/fuzz/$$f.log | sed -n '2s/ corp.*//p'; done
$(BUILD)/fuzz_%: tests/fuzz/t_%.c tests/fuzz/fuzz.h $(BUILD)/inside.a
	@$(CC) $(ALL_CFLAGS) -fsanitize=fuzzer -Itests -o $@ $< $(BUILD)/inside.a $(LIBS)

coverage:
	@tools/deps coverage
	@$(MAKE) --no-print-directory BUILD=build/coverage CFLAGS="-O1 -g --coverage -Wno-maybe-uninitialized" check
	@gcovr --root . --filter src/ --object-directory build/coverage build/coverage

demo: deps
	@tools/deps data || echo "no Fashion-MNIST: the demo uses built-in images"
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@BUILD=$(BUILD) tools/demo image
demo-text: deps
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@BUILD=$(BUILD) tools/demo text $(TEXT)
demo-forecast: deps
	@$(MAKE) --no-print-directory $(PARALLEL) all
	@BUILD=$(BUILD) tools/demo forecast

lint:
	@tools/lint

# what programs that were linked rely on, against include/taut.abi
abi: all
	@CC="$(CC)" tools/abi $(BUILD)
abi-write: all
	@CC="$(CC)" tools/abi $(BUILD) write

bench: all
	@BUILD=$(BUILD) bench/run

format:
	clang-format -i $(shell git ls-files '*.c' '*.h' '*.cu')

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 755 $(BUILD)/taut $(DESTDIR)$(PREFIX)/bin/taut
	install -m 644 include/taut.h $(DESTDIR)$(PREFIX)/include/taut.h
	install -m 644 $(BUILD)/libtaut.a $(DESTDIR)$(PREFIX)/lib/libtaut.a
	install -m 755 $(BUILD)/libtaut.so $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	$(if $(CUDA),install -m 755 $(BUILD)/libtaut_cuda.so $(DESTDIR)$(PREFIX)/lib/libtaut_cuda.so)
	$(if $(MPI),install -m 755 $(BUILD)/libtaut_mpi.so $(DESTDIR)$(PREFIX)/lib/libtaut_mpi.so)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libtaut.so
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 man/man5 bash-completion/completions zsh/site-functions \
	    fish/vendor_completions.d taut/recipes doc/taut/howto doc/taut/modules)
	$(BUILD)/taut man > $(DESTDIR)$(PREFIX)/share/man/man1/taut.1
	$(BUILD)/taut man recipe > $(DESTDIR)$(PREFIX)/share/man/man5/taut-recipe.5
	for c in $$($(BUILD)/taut --help | sed -n '/^  taut recipe/d; s/^  taut \([a-z]*\) .*/\1/p'); do \
	    $(BUILD)/taut man $$c > $(DESTDIR)$(PREFIX)/share/man/man1/taut-$$c.1 || exit 1; done
	$(BUILD)/taut man --bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/taut
	$(BUILD)/taut man --zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_taut
	$(BUILD)/taut man --fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/taut.fish
	install -m 644 recipes/*.ini $(DESTDIR)$(PREFIX)/share/taut/recipes
	install -m 644 README.md CHANGELOG.md LICENSE docs/*.md docs/*.svg $(DESTDIR)$(PREFIX)/share/doc/taut
	install -m 644 docs/howto/*.md $(DESTDIR)$(PREFIX)/share/doc/taut/howto
	install -m 644 docs/modules/*.md $(DESTDIR)$(PREFIX)/share/doc/taut/modules
	sed 's|^prefix=.*|prefix=$(PREFIX)|' $(BUILD)/taut.pc > $(DESTDIR)$(PREFIX)/lib/pkgconfig/taut.pc
	@[ -n "$(DESTDIR)" ] || { PATH="$$PATH:/sbin:/usr/sbin"; ldconfig 2>/dev/null; ldconfig -p | grep -q "$(PREFIX)/lib/$(SONAME)"; } || \
	    echo "the loader does not look in $(PREFIX)/lib: link programs with -Wl,-rpath,$(PREFIX)/lib, or set LD_LIBRARY_PATH=$(PREFIX)/lib"

clean:
	rm -rf build demo

-include $(shell find $(BUILD) build/cuda -name root -prune -o -name '*.d' -print 2>/dev/null)
