from spack.package import *


class Hmmjit(CMakePackage):
    """Profile-HMM search of proteins with the results of HMMER's hmmsearch, byte for byte, on the CPU and on NVIDIA
    GPUs, whose kernels are compiled at run time for each length of a model."""

    homepage = "https://hmmjit.invalid"
    # Who publishes the recipe names the repository, and a checksum for each released version.
    git = "https://hmmjit.invalid/hmmjit.git"

    license("BSD-3-Clause", checked_by="hmmjit authors")

    version("main", branch="main")

    variant("cuda", default=False, description="GPU search: NVRTC, which is opened at run time")
    variant("python", default=True, description="The Python package")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("nlohmann-json@3.10:", type="build")
    depends_on("highway@1.0.3:", type="build")
    depends_on("xxhash@0.8:", type="build")
    depends_on("fmt@9:")
    depends_on("zlib-api")
    depends_on("zstd@1.5:")
    depends_on("cuda@12:13", when="+cuda")
    depends_on("python@3.8:", type=("build", "run"), when="+python")

    generator("ninja")
    # std::expected is in GCC's library from 12 on.
    conflicts("%gcc@:11")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    extends("python", when="+python")

    def cmake_args(self):
        return [self.define_from_variant("HMMJIT_WITH_CUDA", "cuda"), self.define("HMMJIT_DEVELOPER_MODE", False)]

    def setup_run_environment(self, env):
        if self.spec.satisfies("+cuda"):
            env.set("HMMJIT_NVRTC_DIR", self.spec["cuda"].prefix.lib64)
        if self.spec.satisfies("+python"):
            env.prepend_path("PYTHONPATH", self.prefix.join("lib/python3/dist-packages"))

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_version(self):
        Executable(self.prefix.bin.hmmjit)("--version", "--verbose")
