// Package class looks after EC2NodeClasses: what their selectors find, whether machines could be launched, and their end.
//
//	EC2NodeClass --> finaliser --> hash --> discovery --> examine --> DryRun --> one patch of the status
//	                               (claims first)         pure        EC2
//	deleted: wait for its claims --> instance profiles, launch templates --> finaliser gone
//
// Everything that is wrong with a class is said in its conditions, in the user's words: the field, and what would be right.
// An error of AWS that goes away by itself (throttled, no answer) changes no condition; the class is looked at again soon.
//
// What is read of AWS is kept by package discovery; this package decides when it is looked at again: subnets each minute,
// images and security groups every five minutes once they are found, dry runs every half an hour or when the class changes.
//
// The dry runs make nothing: they ask EC2 whether a launch template, an instance and a fleet could be made, with the
// instance profile, network, image, tags and user data that the class gives. EC2 checks permissions and many parameters
// then, and no capacity.
//
// The package must not know how machines are chosen or bought, what pools want, nor metrics; the binary gives it functions
// for what other packages do.
package class
