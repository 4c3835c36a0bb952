// Package catalog is the file of facts about EC2 that comes with the program: 1,373 instance types with their sizes, zones
// and on-demand prices, for a start without a network and for simulations. What EC2 itself answers later is newer and
// wins; Type is the form of both.
//
//	catalog.json.gz --Load--> Catalogue{Types, Meta} --> the provider (package instance), the simulator
//	DescribeInstanceTypes, DescribeInstanceTypeOfferings --> []Type (by whoever has a client)
//
// The data is of 21 and 22 August 2026, its prices of 20 July 2026 (Meta says so exactly). Prices are those of us-east-1,
// us-gov-east-1 and us-gov-west-1: Linux, shared tenancy, USD per hour. Zones are those of us-east-1, us-west-2 and
// eu-west-1. Catalogue.Unpriced lists the types that a region has no price for. Spot prices are not in it: they change.
//
// Sources and licences:
//
//   - sizes, zones: getmoto/moto, revision 0af643a5d of 2026-08-22, whose data are answers of EC2. Copyright its
//     authors, Apache License, Version 2.0.
//   - prices, branch interfaces, baseline network bandwidth: aws/karpenter-provider-aws, revision 1d927085d of
//     2026-08-21, whose data are answers of the AWS price list and EC2. Copyright its authors, Apache License,
//     Version 2.0.
//
// The licence's text is in the file LICENSE of this repository. The data was rewritten into another form.
//
// To replace the file, write JSON of the same form (one object with meta and types, keys as in the tags of Type, zero
// values left out) and run, in this folder:
//
//	go run ./pack < new.json > catalog.json.gz
//
// The package must not know a provider, a simulator or the AWS SDK: both sides read it, so that neither can hand the other
// its own mistakes in anything but these facts.
package catalog
