// Package view is what the page shows, as plain data: a fleet, its cost, the pending pods, what keeps nodes, and a plan
// as steps between two fleets.
//
//	offline.Overview --> Fleet, Cost, Pending, Savings, Plan --+--> picture.Picture (canvas, SVG)
//	                                                           +--> Sheet           (table, CSV, JSON)
//
// A picture and a sheet of a view have the same rows in the same order: both are made from the values of this package,
// and a filter or an order applies to the values.
//
// The package is pure: the same values give the same rows, whatever order the values came in. It must not depend on
// Kubernetes, the engine or a provider; plugin/offline fills the values.
package view
