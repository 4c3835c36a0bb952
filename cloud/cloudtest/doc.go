// Package cloudtest is the conformance suite that every provider passes.
//
//	func TestProvider(t *testing.T) { cloudtest.Run(t, harness) }
//
//	Run --for each test--> Harness(t) --> World: an empty cloud --Provider(t)--> the provider, as in a new process
//	                                        | SellOut, LoseAnswers, Hang: inject faults
//
// The harness supplies the cloud: a simulator for a paid cloud, a real API server for kwok. The suite uses the provider
// through cloud.Provider only and reads types, zones and labels from the catalog, so it contains nothing specific to
// one provider. It tests the contract of package cloud: one machine per claim whatever happens, typed errors, the
// cheapest available offering, labels that satisfy the claim's requirements, honored deadlines, and no state lost in a
// restart.
//
// testdata/provider is a complete provider with its harness, in 300 lines. It is also the test of this package. A module
// that replaces this one by a checkout can copy its go.sum to build without a network.
//
// The package must not depend on any provider.
package cloudtest
