// Package class reconciles EC2NodeClasses: it resolves their selectors, checks whether machines can be launched, and
// deletes their resources.
//
//	EC2NodeClass --> finalizer --> hash --> discovery --> examine --> DryRun --> one patch of the status
//	                               (claims first)         pure        EC2
//	deleted: wait for its claims --> instance profiles, launch templates --> finalizer removed
//
// Every problem of a class is in its conditions, in terms of its spec: the field, and a valid value. A temporary AWS
// error (throttled, no response) changes no condition; the class is reconciled again soon.
//
// Package discovery caches AWS data. This package decides when to read it again: subnets every minute; images and
// security groups every five minutes once they are found; dry runs every 30 minutes or when the class changes.
//
// The dry runs create nothing. They call EC2 to find out whether a launch template, an instance and a fleet could be
// created with the instance profile, network, image, tags and user data of the class. EC2 then checks permissions and
// many parameters, but not capacity.
//
// The package must not depend on how machines are selected or launched, on the needs of pools, nor on metrics. The
// binary injects functions of other packages.
package class
