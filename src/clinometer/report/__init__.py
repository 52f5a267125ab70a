"""The report of a run: one self-contained HTML page, and figures for papers. Never needs torch."""

from clinometer.report.charts import altair_chart
from clinometer.report.evidence import Evidence, Exchange
from clinometer.report.rendering import ProbeText, ReportPage, render
from clinometer.report.writing import page_bytes, read_page, save_figures, write_page, write_report

__all__ = [
    "Evidence",
    "Exchange",
    "ProbeText",
    "ReportPage",
    "altair_chart",
    "page_bytes",
    "read_page",
    "render",
    "save_figures",
    "write_page",
    "write_report",
]
