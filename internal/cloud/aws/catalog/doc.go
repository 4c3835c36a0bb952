// Package catalog is the embedded file of facts about EC2: 1,373 instance types with their sizes, zones and on-demand
// prices, for a start without a network and for simulations. Later responses of EC2 are newer and take precedence. Type
// is used for both.
//
//	catalog.json.gz --Load--> Catalog{Types, Meta} --> the provider (package instance), the simulator
//	DescribeInstanceTypes, DescribeInstanceTypeOfferings --> []Type (by code with a client)
//
// The file lacks a few features of types; features.go adds them as AWS documents them.
//
// The data is from August 21 and 22, 2026, and its prices from July 20, 2026 (Meta has the exact times). Prices are
// those of us-east-1, us-gov-east-1 and us-gov-west-1: Linux, shared tenancy, USD per hour. Zones are those of
// us-east-1, us-west-2 and eu-west-1. Catalog.Unpriced lists the types without a price in a region. Spot prices are
// not included, because they change.
//
// Sources and licenses:
//
//   - sizes, zones: getmoto/moto, revision 0af643a5d of 2026-08-22, whose data are responses of EC2. Copyright its
//     authors, Apache License, Version 2.0.
//   - prices, branch interfaces, baseline network bandwidth: aws/karpenter-provider-aws, revision 1d927085d of
//     2026-08-21, whose data are responses of the AWS price list and EC2. Copyright its authors, Apache License,
//     Version 2.0.
//
// The text of the license is in the file LICENSE of this repository. The data was converted to another form.
//
// To replace the file, write JSON of the same form (one object with meta and types, keys as in the tags of Type, zero
// values omitted) and run, in this folder:
//
//	go run ./pack < new.json > catalog.json.gz
//
// The package must not depend on a provider, a simulator or the AWS SDK: both sides read it, so that mistakes of one
// side affect the other in nothing but these facts.
package catalog
