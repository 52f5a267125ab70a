"""One self-contained HTML page, and figures for papers, from the folder of a run. Never torch."""

from clinometer.report.charts import altair_chart
from clinometer.report.page import Evidence, Exchange, ProbeText, ReportPage
from clinometer.report.rendering import render
from clinometer.report.saving import save_figures
from clinometer.report.writing import read_page, write_report

__all__ = [
    "Evidence",
    "Exchange",
    "ProbeText",
    "ReportPage",
    "altair_chart",
    "read_page",
    "render",
    "save_figures",
    "write_report",
]
