"""What a search over `samples/` must find: a question, and the document whose piece must come first.

Each fact stands in one sample only, and no question repeats its sentence. Paths are relative to `samples/`, with
slashes. Checked with the bundled static embedding on pieces of 250 to 2,000 characters, rows of tables and JSON both
raw and as "name: value" text.
"""

FACTS: tuple[tuple[str, str], ...] = (
    ("How many hours of rest does the crew need between two watches?", "handbook/crew-handbook.md"),
    ("How often is the harbour entrance dredged?", "handbook/harbour-manual.rst"),
    ("How many prisms does the lens of the lighthouse have?", "handbook/lighthouse-guide.epub"),
    ("Where are the life jackets for children kept?", "handbook/safety-briefing.pptx"),
    ("Which soup does the café cook in winter?", "handbook/winter café rota.md"),
    ("How big were the revenue and the surplus of the cooperative?", "office/annual-report.pdf"),
    ("What was decided about solar panels on the roof of the ticket hall?", "office/board-minutes.docx"),
    ("What notice does the school board have to give to end the charter?", "office/charter-contract.docx"),
    ("What does one curved pane of laminated glass cost?", "office/glazier-quote.txt"),
    ("What is the return fare to Tern Island for an adult with a bicycle?", "office/price-list.xlsx"),
    ("After how many hours of running is the Marram's engine overhauled?", "operations/incident-report.pdf"),
    ("How are duplicate ticket scans removed in the data warehouse?", "operations/night-load-runbook.txt"),
    ("When did the tide gauge measure the storm surge peak?", "operations/tide-gauge-readings.csv"),
    ("Why did the solar panel of the beacon give so little current?", "operations/beacon-telemetry.jsonl"),
    ("Which buoy lies next to the wreck of a coal barge?", "operations/buoy-registry.json"),
    ("Do pets travel for free?", "support/faq.html"),
    ("Who forgot a violin on the catamaran?", "support/lost-violin.eml"),
    (
        "What did support promise after the cancelled crossing: refund, voucher, hotel?",
        "support/refund-conversation.json",
    ),
    ("How close may the boat get to resting seals?", "support/seal-watch.html"),
)

BROKEN = "broken-dry-dock-survey.pdf"
"""The one sample no reader gets text from: an upload that stopped in the middle of its first picture."""

N_SAMPLES = 21  # 20 files, and the attachment of a mail
"""Files under `samples/`, the broken one included."""
