#!/usr/bin/env python3
"""Checks what the compiler made of the kernels: `machine_code.py <rlib>`, a release build with v0 symbol names.

Kernels become vector code only as long as everything in them is inlined into `vectorize`. A helper that is not, for
want of `#[inline(always)]` or inside a closure of the standard library, turns into a call to code without the level's
instructions: results stay right, the speed is gone, and no test notices. The disassembly shows it.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

SRC = Path(__file__).resolve().parent.parent / "src"


class Kernel(NamedTuple):
    work: str  # the instruction that does the kernel's work, as a pattern; {p} is ps for f32 and pd for f64
    fuses: bool = False  # whether multiply and add must be fused; otherwise they must not be
    types: tuple = ("f32", "f64")
    calls: str = r"(?!)"  # what it may call beside what every kernel may, as a pattern


COPY = r"vmov\w+"

# Every method of every `trait Kernels`.
KERNELS = {
    ("gather", "copy_rows"): Kernel(COPY),
    ("gather", "add_rows"): Kernel("vadd{p}"),
    ("gather", "dot_rows"): Kernel("vmul{p}"),
    ("gather", "add_and_dot_rows"): Kernel("vmul{p}"),
    ("gather", "pull_rows"): Kernel("vmul{p}"),
    ("gather", "fold_rows"): Kernel("v(add|mul){p}"),
    ("gather", "choose_rows"): Kernel("vcmp\\w*{p}"),
    ("gather", "add_chosen"): Kernel("vadd{p}"),
    ("gather", "share_rows"): Kernel("vdiv{p}"),
    ("gather", "divide_rows"): Kernel("vdiv{p}"),
    ("gather", "divide_by_totals"): Kernel("vdiv{p}"),
    ("gather", "sum_products"): Kernel("vmul{p}"),
    ("gather", "pull_softmax"): Kernel("vmul{p}"),
    ("gather", "pull_products"): Kernel("vmul{p}"),
    # Kernels that are nearly one sample are computed one sample after another.
    ("gaussian", "maps"): Kernel("vmul{p}", fuses=True, calls=r"pullback::gaussian::narrow::\w+::<f\d+>"),
    ("gaussian", "moments"): Kernel("vmul{p}", fuses=True, calls=r"pullback::gaussian::narrow::\w+::<f\d+>"),
    ("gaussian", "blur_peaks"): Kernel("vmul{p}", fuses=True),
    ("gaussian", "blur_shares"): Kernel("vmul{p}", fuses=True),
    ("gaussian", "blur_row"): Kernel("vmul{p}", fuses=True),
    ("gaussian", "scatter_row"): Kernel("vmul{p}", fuses=True),
    ("gaussian", "blur_moments"): Kernel("vmul{p}", fuses=True),
    ("kdtree", "extent"): Kernel("vmin{p}"),
    # It sorts a small sample.
    ("kdtree", "select"): Kernel(r"vcmp\w*{p}", calls=r"core::slice::sort::.*"),
    # Not all metrics multiply.
    ("kdtree", "walk"): Kernel("vsub{p}"),
    ("kdtree", "packet"): Kernel("vmul{p}"),
    ("kdtree", "ball"): Kernel("vsub{p}"),
    ("kdtree", "sort"): Kernel(r"vp?cmp\w+"),
    ("mipmap", "pack_above"): Kernel(r"vcmp\w*{p}"),
    ("mipmap", "pack_nonzero"): Kernel(r"vp(cmpeq|test)\w+", types=("u8", "u16", "u32", "u64")),
    # The words of whole rows are transposed.
    ("mipmap", "cut"): Kernel(r"vps[lr]l\w+", types=("u64",)),
    ("mipmap", "fly"): Kernel("vdiv{p}", types=("f64",)),
    ("mipmap", "max_plane"): Kernel(r"vcmp\w*{p}"),
    ("mipmap", "sum_plane"): Kernel("vadd{p}"),
    ("mipmap", "divide_plane"): Kernel("vdiv{p}"),
    # Beside the gradients of its own that a plane may have.
    ("mipmap", "spread_plane"): Kernel("vadd{p}"),
    ("triconv", "sums"): Kernel(r"vfmadd\w+{p}", fuses=True),
    ("triconv", "edge"): Kernel(r"vfmadd\w+{p}", fuses=True),
    ("triconv", "settle"): Kernel(r"vfmadd\w+{p}", fuses=True),
    ("triconv", "window"): Kernel(r"vfmadd\w+{p}", fuses=True),
    ("triconv", "quotients"): Kernel("vdiv{p}"),
    ("triconv", "interleave"): Kernel(r"v(perm|unpck)\w+"),
    ("triconv", "deinterleave"): Kernel(r"v(perm|unpck)\w+"),
}

REGISTER = {"V3": "%ymm", "V4": "%zmm"}
PACKED = {"f32": "ps", "f64": "pd", "u8": "", "u16": "", "u32": "", "u64": ""}
FUSED = r"vfn?m(add|sub)\w+"

# What a kernel may call: the ends of failed checks, and copies by the C library.
CALLABLE = re.compile(r"mem(cpy|move|set|cmp)|core::panicking::.*|core::(slice|str|option|result)::.*_fail(ed)?")
INTRINSIC = re.compile(r"core::core_arch::x86\w*::\w+::_mm\w*")
# A method of `trait Kernels` chooses a level and holds the code of the lowest. `inner` is what `Simd::vectorize`
# compiles for a higher one, from a closure of that method.
METHOD = re.compile(r"<([fu]\d+) as pullback::(\w+)::[\w:]*Kernels>::(\w+)")
VECTORIZED = re.compile(r"<pullback::simd::x86::(V\d) as .*>::vectorize::inner::<.*>")
CHOICE = re.compile(VECTORIZED.pattern + r"|<pullback::simd::x86::V\d>::detect")

faults = defaultdict(list)


def check_sources():
    """The table holds what the sources hold, so that no kernel is forgotten."""
    sources = set()
    for path in sorted(SRC.glob("*/**/*.rs")):
        text, family = path.read_text(), path.relative_to(SRC).parts[0]
        trait = re.search(r"^pub\S* trait Kernels\b.*?^}", text, re.M | re.S)
        if trait:
            sources |= {(family, name) for name in re.findall(r"^    fn (\w+)", trait[0], re.M)}
        elif family != "simd" and re.search(r"\bat!\(", text):
            # A generic function would be compiled in the user's crate, where this check does not see it.
            faults[path.relative_to(SRC.parent)].append("runs `at!` outside of a `trait Kernels`")
    for kernel in sorted(sources - KERNELS.keys()):
        faults[": ".join(kernel)].append("is in the sources and not in this check's table")
    for kernel in sorted(KERNELS.keys() - sources):
        faults[": ".join(kernel)].append("is in this check's table and not in the sources")


def disassemble(rlib):
    """Returns {function: instructions} and {function: functions that it names}."""
    objdump = ["objdump", "-dr", "--syms", "--no-show-raw-insn", rlib]
    text = subprocess.run(objdump, check=True, capture_output=True, text=True).stdout
    # Relocations name a local function by its section.
    text = text.replace(" .text._R", " _R").replace("\t.text._R", "\t_R")
    demangle = ["c++filt", "--format=rust", "--no-verbose"]
    text = subprocess.run(demangle, check=True, capture_output=True, text=True, input=text).stdout
    instructions, names, function = defaultdict(list), defaultdict(set), None
    for line in text.splitlines():
        if header := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            function = header[1]
        elif reference := re.match(r"\s+[0-9a-f]+: R_X86_64_(?:PLT32|GOTPCREL\w*)\s+(.*?)(?:[-+]0x[0-9a-f]+)?$", line):
            names[function].add(reference[1])
        elif instruction := re.match(r"\s+[0-9a-f]+:\t(\S+)\s*(.*)", line):
            instructions[function].append(instruction.groups())
    return instructions, names


def check_kernel(function, level, element, kernel, instructions):
    """Returns the number of instructions that do the kernel's work in whole registers of the level."""

    def count(pattern, register=""):
        pattern = re.compile(pattern)
        return sum(bool(pattern.fullmatch(mnemonic)) and register in operands for mnemonic, operands in instructions)

    work, register = kernel.work.format(p=PACKED[element]), REGISTER[level]
    if not count(work, register):
        faults[function].append(f"has no `{work}` on {register}")
    if kernel.fuses and not count(FUSED + PACKED[element], register):
        faults[function].append(f"has no fused multiply-add on {register} and must have one")
    if not kernel.fuses and count(FUSED):
        faults[function].append("fuses multiply and add, so that its results depend on the level")
    return count(work, register)


def check_code(rlib):
    instructions, names = disassemble(rlib)
    work = {}
    for function in instructions:
        vectorized = VECTORIZED.fullmatch(function)
        if not vectorized and not METHOD.fullmatch(function):
            continue
        method = METHOD.search(function)
        element, *kernel = method.groups() if method else [None]
        own = KERNELS.get(tuple(kernel), Kernel(COPY)).calls
        for callee in sorted(names[function]):
            allowed = CALLABLE.fullmatch(callee) or re.fullmatch(own, callee)
            if not allowed and (vectorized or not CHOICE.fullmatch(callee)):
                faults[function].append(f"calls `{callee}`, which is not inlined")
        if vectorized:
            level = vectorized[1]
            if tuple(kernel) in KERNELS:
                found = check_kernel(function, level, element, KERNELS[*kernel], instructions[function])
                work[*kernel, element, level] = found
            else:
                faults[function].append("is vectorized and not in this check's table")
    for function, callees in names.items():
        # What other crates compile here is their own affair.
        for callee in sorted(filter(INTRINSIC.fullmatch, callees)) if "pullback::" in function else []:
            faults[function].append(f"calls `{callee}`: it is not inlined into `vectorize`")

    for (family, name), kernel in KERNELS.items():
        for element in kernel.types:
            counts = [work.get((family, name, element, level)) for level in REGISTER]
            for level, found in zip(REGISTER, counts):
                if found is None:
                    faults[f"{family}: {name} for {element}"].append(f"is not compiled for {level}")
            instruction = kernel.work.format(p=PACKED[element])
            print(f"{family:9} {name:12} {element}  {instruction:10}", *(
                f"{found or 0:4} {register}" for found, register in zip(counts, REGISTER.values())
            ), " fused" * kernel.fuses)


check_sources()
check_code(sys.argv[1])
if faults:
    for where, reasons in faults.items():
        print("", where, *(f"    {reason}" for reason in reasons), sep="\n", file=sys.stderr)
    sys.exit(1)
