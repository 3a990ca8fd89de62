-- Module file for Lmod. Installed as <modulefiles>/hmmjit/0.1.0.lua beside an installation in `root`:
--   cmake --install build/own --prefix /opt/hmmjit/0.1.0
local root = "/opt/hmmjit/0.1.0"

help([[
hmmjit searches protein profiles against protein sequences with the results of HMMER's hmmsearch.
    hmmjit search --tblout hits.tbl Pfam.hmm proteome.fasta
]])
whatis("Name: hmmjit")
whatis("Version: 0.1.0")
whatis("Description: profile-HMM search with hmmsearch's results, on the CPU and on NVIDIA GPUs")

prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
prepend_path("PYTHONPATH", pathJoin(root, "lib/python3/dist-packages"))
-- GPU jobs also need NVRTC 12 or 13: load the CUDA module of the site, or name its folder.
-- setenv("HMMJIT_NVRTC_DIR", "/usr/local/cuda/lib64")
