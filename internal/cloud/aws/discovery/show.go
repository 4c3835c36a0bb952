package discovery

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/awslabs/operatorpkg/status"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// once matches the parts of AWS's messages that differ in each response: the request ID, and the encoded authorization
// failure.
var once = regexp.MustCompile(`\(request [^)]*\)|[Ee]ncoded authorization failure message: \S+`)

// SameWords reports whether two messages about calls are equal except for these parts.
func SameWords(a, b string) bool { return once.ReplaceAllString(a, "") == once.ReplaceAllString(b, "") }

// Show writes discovery results into a class's status and conditions. If a call fails, a condition stays as it was,
// because the error contains no information about the class. The object is modified in memory only.
type Show struct {
	Class *awsv1.EC2NodeClass
	// Options are the options of the class's condition set: the clock.
	Options []status.ForOption
}

func (s Show) conditions() status.ConditionSet { return s.Class.StatusConditions(s.Options...) }

// Subnets writes the result of Subnets.Find.
func (s Show) Subnets(found []Subnet) {
	s.Class.Status.Subnets = nil
	if len(found) == 0 {
		s.conditions().SetFalse(awsv1.ConditionSubnetsReady, awsv1.ReasonSubnetsNotFound,
			"spec.subnetSelectorTerms: no subnet matches; check the tags, the ids and the region")
		return
	}
	for _, subnet := range found {
		s.Class.Status.Subnets = append(s.Class.Status.Subnets, awsv1.Subnet{ID: subnet.ID, Zone: subnet.Zone, ZoneID: subnet.ZoneID})
	}
	s.conditions().SetTrue(awsv1.ConditionSubnetsReady)
}

// Groups writes the result of Groups.Find, limited to the network of the subnets.
func (s Show) Groups(found []Group, subnets []Subnet) {
	s.Class.Status.SecurityGroups = nil
	used, elsewhere := OfNetwork(found, subnets)
	if len(used) == 0 {
		message := "spec.securityGroupSelectorTerms: no security group matches; check the tags, the names, the ids and the region"
		if len(elsewhere) > 0 {
			message = fmt.Sprintf("spec.securityGroupSelectorTerms: only security groups of other networks than that of the subnets match: %s",
				ids(elsewhere))
		}
		s.conditions().SetFalse(awsv1.ConditionSecurityGroupsReady, awsv1.ReasonSecurityGroupsNotFound, message)
		return
	}
	for _, group := range used {
		s.Class.Status.SecurityGroups = append(s.Class.Status.SecurityGroups, awsv1.SecurityGroup{ID: group.ID, Name: group.Name})
	}
	s.conditions().SetTrue(awsv1.ConditionSecurityGroupsReady)
}

func ids(groups []Group) string {
	var list []string
	for _, group := range groups {
		list = append(list, group.ID+" of "+group.VPC)
	}
	return strings.Join(list, ", ")
}

// Images writes the result of Images.Find. It returns false if err is a call error.
func (s Show) Images(found []Image, err error) bool {
	var unsupported *UnsupportedAliasError
	switch {
	case errors.As(err, &unsupported):
		s.Class.Status.AMIs = nil
		s.conditions().SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonUnsupportedAlias, unsupported.Error())
		return true
	case err != nil:
		return false
	}
	s.Class.Status.AMIs = nil
	if len(found) == 0 {
		s.conditions().SetFalse(awsv1.ConditionAMIsReady, awsv1.ReasonAMINotFound,
			"spec.amiSelectorTerms: no image matches that is available and for x86_64 or arm64; check the alias or the terms, the owner of the images, and the region")
		return true
	}
	for _, image := range found {
		s.Class.Status.AMIs = append(s.Class.Status.AMIs,
			awsv1.AMI{ID: image.ID, Name: image.Name, Deprecated: image.Deprecated, Requirements: image.Requirements})
	}
	s.conditions().SetTrue(awsv1.ConditionAMIsReady)
	return true
}

// ReasonRoleNotFound is the reason of InstanceProfileReady if spec.role does not exist.
const ReasonRoleNotFound = "RoleNotFound"

// Profile writes the result of Profiles.Ensure. It returns false if err is a call error.
func (s Show) Profile(name string, err error) bool {
	var missing *RoleNotFoundError
	switch {
	case errors.As(err, &missing):
		s.conditions().SetFalse(awsv1.ConditionInstanceProfileReady, ReasonRoleNotFound, missing.Error())
		return true
	case err != nil:
		return false
	}
	s.Class.Status.InstanceProfile = name
	if old := s.conditions().Get(awsv1.ConditionInstanceProfileReady); old.Reason != awsv1.ReasonInstanceProfileNotFound || old.ObservedGeneration != s.Class.Generation {
		// Otherwise a dry run has shown that EC2 does not find it. The condition stays until the next dry run.
		s.conditions().SetTrue(awsv1.ConditionInstanceProfileReady)
	}
	return true
}

// ReasonCallRefused is the reason of an unknown condition if AWS refuses the call.
const ReasonCallRefused = "CallRefused"

// Unanswered writes the error of a call if an operator has to resolve it: a missing permission, or a parameter that AWS
// rejects. Earlier results remain in the status and in use, so a condition that is true stays true, with the error
// in its message.
func (s Show) Unanswered(condition string, err error) {
	kind, old := KindOf(err), s.conditions().Get(condition)
	if kind != Denied && kind != Rejected || old.Reason == ReasonCallRefused && strings.HasSuffix(once.ReplaceAllString(old.Message, ""),
		once.ReplaceAllString(err.Error(), "")) {
		return
	}
	switch {
	case old.IsUnknown():
		s.conditions().SetUnknownWithReason(condition, ReasonCallRefused, err.Error())
	case old.IsTrue():
		s.conditions().SetTrueWithReason(condition, ReasonCallRefused, "the previous result is used: "+err.Error())
	}
}
