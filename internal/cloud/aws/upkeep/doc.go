// Package upkeep keeps what the provider knows and owns up to date, in rounds that come again after a while.
//
//	DescribeInstanceTypes, DescribeInstanceTypeOfferings --> Types     every 12 h
//	GetProducts                                          --> Prices    every 12 h  } merged into instance.Prices
//	DescribeSpotPriceHistory                             --> Prices    every 15 min }
//	images of aliases that were deprecated since         --> asked for again, every half an hour
//	launch templates, instance profiles that nothing uses --> deleted, every 5 min and every half an hour
//	claims that have a node --> Tagger --> tags Name and karpenter.sh/nodeclaim of their instances
//
// Instances without a claim are the business of the collector of claims (controller/nodeclaim), for every cloud alike.
//
// A round that fails is told of and tried again soon, with pauses that double up to its period; what was known before stays
// in use: the embedded catalogue and its prices to begin with (Embedded says how old they are and what they lack). An answer
// that cannot be right, such as a region that sells nothing, counts as a failure.
//
// Prices are refreshed where the region's list can be asked: not in an isolated VPC, nor for us-gov regions, for which the
// embedded prices hold. Spot prices come from EC2 itself, in every region.
//
// The package must not know how classes, launches or catalogues are made of what it fetches, nor metrics; the binary gives
// it functions for what other packages own.
package upkeep
