// Package top shows a fleet on a terminal: its nodes with how full they are and what they cost, the pods that wait and
// why, and the cost of it all against the least that any plan could cost.
//
//	who reads the cluster --> Fleet --+--> Text(Fleet)                 one page, for scripts and documents
//	(a function, again and again)     |
//	                                  +--> Screen: Show, Press, Resize --> Render   what one sees, as a value
//	                                          ^                             |
//	                                       Program (bubbletea): keys, the timer, the terminal
//
// A Fleet is plain data. Text and Screen are pure: they know neither a terminal nor a clock, and the same Fleet and keys
// give the same text. Program is the only part that does I/O, and holds nothing but a Screen.
//
// Cost. Widths and order are worked out when a Fleet comes or a key changes them, once per node. Render lays out the rows
// that are on the screen and no others, so that a fleet of 5,000 nodes is drawn as fast as one of fifty; what
// changes is sent to the terminal line by line, which is what makes it usable over SSH.
//
// Colours say nothing that words do not. Columns that a narrow terminal has no room for are left out, the least
// important first.
//
// The package must not know Kubernetes, the engine or a provider: who gathers a Fleet knows them.
package top
