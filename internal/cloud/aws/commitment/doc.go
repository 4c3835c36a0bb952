// Package commitment reads what an account has committed to EC2, reserved instances and Savings Plans, and makes rules for
// prices of what instances outside of the cluster leave.
//
//	DescribeReservedInstances, DescribeSavingsPlans, DescribeSavingsPlanRates,
//	DescribeInstances                       --Reader--> Facts --Rules--> []pricerule.Rule
//
// A rule with a limit is a commitment for the engine, as if a price file stated it. What is committed is paid already, so
// all rules are of paid commitments.
//
// The package must not know of NodePools and nodes, nor how plans use the rules.
package commitment
