"""The audited data: the study, its folder on disk, and the importers that create one."""

from portrayal.study.folder import count_parts, read_part, read_study, write_study
from portrayal.study.study import COMBINED, Study

__all__ = ["COMBINED", "Study", "count_parts", "read_part", "read_study", "write_study"]
