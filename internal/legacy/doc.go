// Package legacy serves everything of versions before v1: it is all that the controller knows of them.
//
//	flags, environment, ConfigMap --> Settings           by their names of before v1
//	New(Config) --> Versions --Setup--> v1beta1 objects   the conversion webhook and the upkeep of what is stored (webhook)
//	                                    v1alpha5 objects  Provisioners, AWSNodeTemplates --> pools, classes (provisioner)
//	                         --Complete--> old labels     of a node, where pods use them (nodelabel)
//
// What an older version means is in packages of its own, without clients: settings, v1alpha5, v1beta1. Package migrate,
// which kubectl karpenter migrate calls, shares them and is not linked here. No other package of this folder is imported
// from outside of it.
//
// The package must not know what is launched or removed.
package legacy
