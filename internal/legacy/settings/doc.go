// Package settings reads the controller's settings as they were given before v1: the ConfigMap karpenter-global-settings
// (v0.19 to v0.32) and environment variables of other names. It is pure: who has the ConfigMap, or the environment, hands
// it in.
//
//	data of the ConfigMap --FromConfigMap-->  Old: today's flags with their values,
//	environment           --FromEnvironment->      a line about each old name,
//	                                               what Provisioners and AWSNodeTemplates are translated with
//
// Every key is one row of a table: today's flag, how its value is read, or what to do where there is no such flag any more.
// A value that cannot be read is a Mistake that names the key, the value and what would be right; all of them are found at
// once. A key that is not in the table is told as unknown, since it may be a misspelt one.
//
// Which of two settings counts, the old or the new one, is for the caller to say; so is what becomes of the lines, and whether
// a mistake matters: one about a setting that is given by its new name does not.
//
// Sources: the settings pages of Karpenter v0.18, v0.31 and v0.32, and the upgrade guide to v1.0.
package settings
