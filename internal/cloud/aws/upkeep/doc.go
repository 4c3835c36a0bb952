// Package upkeep refreshes the provider's data and cleans up its resources, in periodic rounds.
//
//	DescribeInstanceTypes, DescribeInstanceTypeOfferings --> Types     every 12 h
//	GetProducts                                          --> Prices    every 12 h  } merged into instance.Prices
//	DescribeSpotPriceHistory                             --> Prices    every 15 min }
//	images of aliases that have been deprecated          --> read again, every 30 min
//	unused launch templates, instance profiles           --> deleted, every 5 min and every 30 min
//	claims that have a node --> Tagger --> tags Name and karpenter.sh/nodeclaim of their instances
//
// Instances without a claim are handled by the garbage collection of claims (controller/nodeclaim), for all clouds.
//
// A round that fails is reported and retried soon, with delays that double up to its period. Earlier data stays in use:
// initially the embedded catalog and its prices (Embedded describes their age and gaps). An implausible response, such
// as a region without instance types, counts as a failure.
//
// On-demand prices are refreshed where the region's price list can be read: not in an isolated VPC, nor for us-gov
// regions, which use the embedded prices. Spot prices are from EC2 itself, in every region.
//
// The package must not depend on how its data is used for classes, launches or catalogs, nor on metrics. The binary
// injects functions of other packages.
package upkeep
