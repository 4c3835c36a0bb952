// Package words has the words that the documentation style excludes, for the programs that look for them. It has no
// other content: its folder is not examined.
package words

// Excluded is a regular expression of the words, in lower case: pronouns in place of the thing that acts.
const Excluded = "nobody|somebody|whoever|everybody|whom|himself"
