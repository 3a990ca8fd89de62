"""Settings of the documentation pages; make_pages.py runs Sphinx with them."""
import gc
import os
import sys

gc.disable()  # it takes a third of the time and frees little

sys.path.insert(0, os.environ["HMMJIT_PYTHON_FOLDER"])

project = "hmmjit"
author = "the hmmjit authors"
copyright = "2026, the hmmjit authors"
release = version = os.environ["HMMJIT_DOCUMENTED_VERSION"]

extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_heading_anchors = 4
# The headers describe what they declare in one sentence; which file declares it is the page's title.
breathe_projects = {"hmmjit": os.environ["HMMJIT_DOXYGEN_XML"], "hmmjit_c": os.environ["HMMJIT_DOXYGEN_C_XML"]}
breathe_default_project = "hmmjit"
breathe_default_members = ("members",)
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False
c_extra_keywords = []
cpp_id_attributes = ["HMMJIT_EXPORT"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"

html_theme = "alabaster"
html_theme_options = {"description": "hmmsearch's results, faster", "page_width": "70em", "sidebar_width": "15em"}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
html_show_sourcelink = False
html_copy_source = False
