// Package cloudtest is the conformance suite that every provider passes.
//
//	func TestProvider(t *testing.T) { cloudtest.Run(t, harness) }
//
//	Run --for each test--> Harness(t) --> World: an empty cloud --Provider(t)--> the provider, as a process begins it
//	                                        | SellOut, LoseAnswers, Hang: what goes wrong in it
//
// The harness supplies the cloud: a simulator for a paid cloud, a real API server for kwok. The suite speaks to the
// provider through cloud.Provider only and finds out types, zones and labels from the catalogue, so nothing in it is
// about one provider. What it tests is the contract of package cloud: one machine per claim whatever happens, typed
// errors, the cheapest offering that can be had, labels that keep what the claim asked for, deadlines honoured, nothing
// forgotten by a restart.
//
// It must not know any provider.
package cloudtest
