// Package top displays a cluster in a terminal: its nodes with their utilization and cost, the pending pods and the
// reasons, and the total cost compared with the lower bound for any plan.
//
//	source of data --> Fleet --+--> Text(Fleet)                 one page, for scripts and documents
//	(a function, periodically) |
//	                           +--> Screen: Show, Press, Resize --> Render   the screen as a value
//	                                   ^                             |
//	                                Program (bubbletea): keys, the timer, the terminal
//
// A Fleet is plain data. Text and Screen are pure: they use neither a terminal nor a clock, and the same Fleet and
// keys produce the same text. Program is the only part that does I/O, and its only state is a Screen.
//
// Cost. Widths and order are computed once per node when a new Fleet arrives or a key changes them. Render formats
// only the visible rows, so that a cluster of 5,000 nodes is drawn as fast as one of fifty. Changes are sent to the
// terminal line by line, which makes it usable over SSH.
//
// Colors only repeat what the text says. Columns that do not fit into a narrow terminal are omitted, the least
// important first.
//
// The package must not depend on Kubernetes, the engine or a provider. The caller that fills a Fleet does.
package top
