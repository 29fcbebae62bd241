"""The questions of `tests/samples/facts.py` in words further from the samples', in the same order.

They were written before any embedder was asked, and none was changed or left out for what it found. The facts' own
questions cannot compare embedders: they were chosen so that the static vectors find all of them.
"""

PARAPHRASES: tuple[str, ...] = (
    "Minimum time off for sailors between shifts?",
    "When do they remove silt from the port approach?",
    "Number of glass elements in the big lamp on the cape?",
    "Where can I find flotation vests for kids?",
    "Which hot dish is served at the coffee house in the cold season?",
    "What were the yearly income and profit of the co-op?",
    "What did the directors agree about photovoltaics on top of the terminal?",
    "How long beforehand must the pupils' transport agreement be cancelled?",
    "Price of a bent safety-glass window?",
    "How much does it cost to go to Tern Island and back with a bike?",
    "At what interval is the ship's motor rebuilt?",
    "How are passes that were scanned twice dropped in analytics?",
    "At what time was the water level highest during the gale?",
    "Why did the navigation light charge so weakly?",
    "Which marker is near the sunken collier?",
    "Is there a charge for bringing my dog?",
    "Whose musical instrument was left aboard?",
    "Which compensation was offered to the customer when the sailing was called off?",
    "How far must we stay away from wildlife on the rocks?",
)
