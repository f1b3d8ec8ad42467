"""The site: pages for commands, rules, advices and APIs, made of their declarations."""
