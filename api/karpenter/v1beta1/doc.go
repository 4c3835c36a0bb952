// Package v1beta1 holds the wire types of the API group karpenter.sh, version v1beta1, which manifests from 2023 and 2024
// are written in: NodePool and NodeClaim. They are served beside v1 and never stored.
//
//	v1beta1 manifest --API server--> conversion webhook (internal/legacy/beta) --> v1, as it is stored
//
// What v1 has and v1beta1 never had (terminationGracePeriod, replicas, reasons of budgets, the operators Gte and Lte, the
// policy Balanced) is part of these types too, under the names of v1: what v1 says can be read, edited and written back
// through v1beta1, and is not lost on the way. So every v1beta1 manifest is accepted, and a few more.
//
// The types exist for their schemas, which api/crds is generated from, and for tests: conversion works on objects as they
// come off the wire, so that nobody's spelling of a duration or a quantity changes.
//
// It must not know how versions are converted.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1beta1
