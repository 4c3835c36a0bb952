// Package words has the words that the documentation style excludes, for the programs that look for them. It has no
// other content: its folder is not examined.
package words

// Excluded is a regular expression of the words, in lower case: pronouns in place of the thing that acts.
const Excluded = "nobody|somebody|whoever|everybody|whom|himself"

// Trade is a regular expression of the words of trade, in lower case, that texts for users exclude: nodes are launched
// and removed.
const Trade = "buy|buys|bought|buying|purchases?|purchased|lets? go|letting go"
