"""Reports: their content, and its forms: text, a page of HTML, JUnit XML, lines of JSON."""
