// Package settings reads the controller's settings in the form used before v1: the ConfigMap
// karpenter-global-settings (v0.19 to v0.32) and environment variables with other names. It is pure: the caller
// passes the ConfigMap or the environment.
//
//	data of the ConfigMap --FromConfigMap-->  Old: current flags with their values,
//	environment           --FromEnvironment->      a line about each old name,
//	                                               input for the translation of Provisioners and AWSNodeTemplates
//
// Every key is one row of a table: the current flag, how its value is parsed, or what to do if the flag no longer
// exists. A value that cannot be parsed is a Mistake with the key, the value and the expected form. All mistakes are
// found at once. A key that is not in the table is reported as unknown, because it may be misspelled.
//
// The caller decides which of an old and a new setting takes precedence, how the lines are used, and whether a
// mistake matters: a mistake in a setting that is also given by its new name does not.
//
// Sources: the settings pages (https://karpenter.sh/docs/reference/settings/) of Karpenter v0.18, v0.31 and v0.32,
// and the upgrade guide to v1.0.
package settings
