"""Tables of the Python package in pandas, polars and pyarrow, and as Parquet. Run by run_pytest.py, each test on its own,
so that ctest's list shows which were skipped because the reader is not installed."""
import importlib
import importlib.util
import os

import pytest
from common import MODELS, TARGETS

import hmmjit

def reader(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"SKIPPED, NOTHING READ: {name} is not installed (tools/install_packages.sh --readers)")
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def tables(results):
    """Tables of targets, of domains, and without rows."""
    empty = hmmjit.search(MODELS, TARGETS, device="cpu", E=1e-300).table("domains")
    assert len(empty) == 0 < len(results.table("domains"))
    return results.table(), results.table("domains"), empty


def test_pandas(tables):
    pandas = reader("pandas")
    for table in tables:
        for frame in (pandas.DataFrame(table), table.to_pandas()):
            assert list(frame.columns) == list(table) and len(frame) == len(table)
            for name in table:
                assert frame[name].to_list() == list(table[name]), name
            types = [str(frame[name].dtype) for name in ("score", "target_length", "included")]
            assert types == ["float64", "int64", "bool"]  # without rows, too


def test_polars(tables):
    polars = reader("polars")
    for table in tables:
        for frame in (polars.DataFrame(dict(table)), table.to_polars()):
            assert frame.columns == list(table) and len(frame) == len(table)
            for name in table:
                assert frame[name].to_list() == list(table[name]), name
        types = [table.to_polars().schema[name] for name in ("target", "score", "target_length", "included")]
        assert types == [polars.Utf8, polars.Float64, polars.Int64, polars.Boolean]


def test_duckdb(tables):
    duckdb = reader("duckdb")
    reader("pyarrow")  # hands the table over
    for table in tables:
        rows = duckdb.from_arrow(table.to_arrow()).fetchall()
        assert rows == list(zip(*(list(table[name]) for name in table)))


def test_pyarrow(tables):
    pyarrow = reader("pyarrow")
    for table in tables:
        read = pyarrow.RecordBatchReader.from_stream(table).read_all()
        read.validate(full=True)
        assert read.column_names == list(table) and read.num_rows == len(table)
        for name in table:
            assert read.column(name).to_pylist() == list(table[name]), name
        assert read.schema.field("included").type == pyarrow.bool_()
        assert table.to_arrow() == read
    odd = hmmjit.search(MODELS, [("\udcff" + s.name, s.residues) for s in hmmjit.Targets.load(TARGETS)], device="cpu")
    with pytest.raises(hmmjit.UsageError, match="^target: text that is not UTF-8"):
        odd.table().to_arrow()


def test_parquet(results, tables, tmp_path):
    pyarrow = reader("pyarrow")
    import pyarrow.parquet
    path = tmp_path / "table.parquet"
    for table in tables:
        table.to_parquet(path, compression="gzip")
        read = pyarrow.parquet.read_table(path)
        assert read.column_names == list(table)
        for name in table:
            assert read.column(name).to_pylist() == list(table[name]), name
        assert read.schema.field("included").type == pyarrow.bool_()
        assert pyarrow.types.is_floating(read.schema.field("score").type)
        assert pyarrow.types.is_large_string(read.schema.field("target").type)
    kept = path.read_bytes()
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    with pytest.raises(Exception, match="compression"):
        results.table().to_parquet(path, compression="no such")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        results.table().to_parquet(tmp_path / "folder")
    (tmp_path / "folder").rmdir()
    with pytest.raises(OSError):
        results.table().to_parquet(tmp_path / "missing" / "table.parquet")
    assert path.read_bytes() == kept and os.listdir(tmp_path) == ["table.parquet"]
