package launch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// callResult is the result of a call.
type callResult int

const (
	executed        callResult = iota // it was executed
	throttled                         // it was not executed, but may succeed later
	lost                              // it may have been executed
	mismatched                        // the client token was used by another request
	templateMissing                   // a launch template does not exist, or is not visible yet
	refused                           // it was not executed and never will be
)

// Codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var (
	throttleCodes = []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException",
		"TooManyRequestsException", "RequestThrottled", "EC2ThrottledException"}
	outageCodes = []string{"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "RequestTimeout",
		"ServerInternal", "IdempotentRequestInProgress"}
	templateCodes = []string{"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound"}
	goneCodes     = []string{"InvalidInstanceID.NotFound"}
	// sellOutCodes mean that the requested capacity is not available now.
	sellOutCodes = []string{"InsufficientInstanceCapacity", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded",
		"UnfulfillableCapacity", "Unsupported",
		"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded"}
)

// outOfCapacity reports whether a code means that the requested capacity is not available now, so that a plan without it
// may succeed: it is sold out, or EC2 does not accept launches into the capacity reservation, such as one that has ended.
func outOfCapacity(code string) bool {
	return slices.Contains(sellOutCodes, code) || strings.Contains(code, "CapacityReservation")
}

const (
	codeNoAddresses = "InsufficientFreeAddressesInSubnet"
	codeNoSpotRole  = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
)

// callResultOf derives the result of a call from its error. An error without an EC2 code proves nothing: the response
// may have been lost.
func callResultOf(err error) callResult {
	if err == nil {
		return executed
	}
	code := codeOf(err)
	switch {
	case slices.Contains(sellOutCodes, code): // EC2 uses status 500 for these, too
		return refused
	case code == "" || slices.Contains(outageCodes, code) || isServerFault(err) && !slices.Contains(throttleCodes, code):
		return lost
	case slices.Contains(throttleCodes, code):
		return throttled
	case code == "IdempotentParameterMismatch":
		return mismatched
	case slices.Contains(templateCodes, code):
		return templateMissing
	}
	return refused
}

// isServerFault reports whether EC2 classifies the error as a server fault, or responded with such a status.
func isServerFault(err error) bool {
	var refusal smithy.APIError
	var response *awshttp.ResponseError
	return errors.As(err, &refusal) && refusal.ErrorFault() == smithy.FaultServer || errors.As(err,
		&response) && response.HTTPStatusCode() >= 500
}

// codeOf returns EC2's code of an error, or an empty string if the error is not from EC2.
func codeOf(err error) string { return call.CodeOf(err) }

// ReasonSpotRole means that the account has never had spot instances, and that the controller may not create the role
// that they need.
const ReasonSpotRole = "SpotSLRCreationFailed"

// reasons maps failures to reasons by a part of their text. The first match is used.
var reasons = []struct{ part, with, reason string }{
	{"ServiceLinkedRole", "", ReasonSpotRole},
	{"Not authorized for images", "", "AMIAuthorizationFailure"},
	{"UnauthorizedOperation", "", "Unauthorized"},
	{"AccessDenied", "", "Unauthorized"},
	{"AuthFailure", "", "Unauthorized"},
	{"InvalidParameter", "belong to different networks", "SecurityGroupSubnetVPCMismatch"},
	{"iamInstanceProfile.name is invalid", "", "InstanceProfileNameInvalid"},
	{"InvalidLaunchTemplateId.NotFound", "", "LaunchTemplateNotFound"},
	{"InvalidLaunchTemplateName.NotFound", "", "LaunchTemplateNotFound"},
	{"User data is limited to", "", "UserDataSizeLimitExceeded"},
	{"InvalidAMIID.Malformed", "", "InvalidAMIID"},
	{"InvalidAMIID.NotFound", "", "AMINotFound"},
	{"RequestLimitExceeded", "", "RequestLimitExceeded"},
	{"InternalError", "", "InternalError"},
	{"not eligible for Free Tier", "", "FreeTierIneligible"},
	{"MaxFleetCountExceeded", "", "FleetQuotaExceeded"},
	{"InvalidPlacementGroup.Unknown", "", awsv1.ReasonPlacementGroupNotFound},
	{"PendingVerification", "", "AccountPendingVerification"},
	{"MaxSpotInstanceCountExceeded", "", "SpotQuotaExceeded"},
	{"VcpuLimitExceeded", "", "VCPULimitExceeded"},
	{codeNoAddresses, "", codeNoAddresses},
	{"InvalidCapacityReservation", "", ReasonReservationInvalid},
	{"CapacityReservation", "", ReasonReservationInvalid},
}

// ReasonReservationInvalid means that EC2 does not accept a launch into a capacity reservation, such as one that has ended.
const ReasonReservationInvalid = "CapacityReservationInvalid"

// remedies describe what to do about a reason if AWS's own text does not.
var remedies = map[string]string{
	ReasonSpotRole:                   "create the service-linked role AWSServiceRoleForEC2Spot, or allow iam:CreateServiceLinkedRole",
	"SecurityGroupSubnetVPCMismatch": "let spec.securityGroupSelectorTerms and spec.subnetSelectorTerms select from one VPC",
	"AMIAuthorizationFailure":        "share the image with this account, or select another in spec.amiSelectorTerms",
}

// ReasonOf returns the CamelCase reason for a failure text of EC2.
func ReasonOf(text string) string {
	for _, r := range reasons {
		if strings.Contains(text, r.part) && strings.Contains(text, r.with) {
			return r.reason
		}
	}
	return launchFailed
}

// launchFailed is the reason for all other failures.
const launchFailed = "LaunchFailed"

// unauthorizedBy describes what denies a call, as far as AWS reports it.
func unauthorizedBy(text string) string {
	switch {
	case strings.Contains(text, "permissions boundary"):
		return "a permissions boundary forbids it"
	case strings.Contains(text, "service control policy"):
		return "a service control policy of the organization forbids it"
	}
	return ""
}

// createError converts a failure to the error in the claim's condition.
func createError(text string, cause error) *cloud.CreateError {
	reason := ReasonOf(text)
	if hint := unauthorizedBy(text); reason == "Unauthorized" && hint != "" {
		text = hint + ": " + text
	}
	if remedy := remedies[reason]; remedy != "" {
		text += "; " + remedy
	}
	return &cloud.CreateError{Reason: reason, Message: text, Err: cause}
}

// refusedError returns the claim's error for a call that EC2 refused as a whole.
func refusedError(err error) error {
	if outOfCapacity(codeOf(err)) {
		return &cloud.InsufficientCapacityError{Message: err.Error()}
	}
	return createError(err.Error(), err)
}

// fleetError returns the error of a claim for which a fleet has no instance. It is insufficient capacity if EC2 reports
// nothing else, and otherwise the first other error.
func fleetError(refusals []ec2types.CreateFleetError) error {
	if len(refusals) == 0 {
		return &cloud.CreateError{Reason: "LaunchFailed", Message: "EC2 launched fewer instances than requested, without a reason"}
	}
	var texts []string
	for _, r := range refusals {
		code, text := aws.ToString(r.ErrorCode), describe(r)
		if !outOfCapacity(code) {
			return createError(text, nil)
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	slices.Sort(texts)
	message := strings.Join(texts[:min(3, len(texts))], "; ")
	if more := len(texts) - 3; more > 0 {
		message += fmt.Sprintf("; and %d more", more)
	}
	return &cloud.InsufficientCapacityError{Message: message}
}

func describe(r ec2types.CreateFleetError) string {
	typeName, zone, _ := placeOf(r)
	return fmt.Sprintf("%s (%s in %s): %s", aws.ToString(r.ErrorCode), typeName, zone, aws.ToString(r.ErrorMessage))
}

func placeOf(r ec2types.CreateFleetError) (typeName, zone, subnet string) {
	if r.LaunchTemplateAndOverrides == nil || r.LaunchTemplateAndOverrides.Overrides == nil {
		return "", "", ""
	}
	o := r.LaunchTemplateAndOverrides.Overrides
	return string(o.InstanceType), aws.ToString(o.AvailabilityZone), aws.ToString(o.SubnetId)
}

// markUnavailable records in u what is unavailable according to a fleet's errors. Errors that the class or dedicated
// tenancy may cause are recorded for the class only, so that they do not affect other classes.
func markUnavailable(u *instance.Unavailable, refusals []ec2types.CreateFleetError, class string, s *Selection) {
	for _, r := range refusals {
		code := aws.ToString(r.ErrorCode)
		typeName, zone, subnet := placeOf(r)
		offer := instance.Offer{CapacityType: s.CapacityType, Type: typeName, Zone: zone}
		switch {
		case code == codeNoSpotRole:
			u.MarkCapacityType(karpv1.CapacityTypeSpot)
		case code == codeNoAddresses && subnet != "":
			u.MarkSubnet(subnet)
		case !slices.Contains(sellOutCodes, code) || typeName == "" || zone == "":
		case s.Placement.ID != "":
			if code == "Unsupported" || s.Tenancy == awsv1.TenancyDedicated {
				offer.Class = class
			}
			markPlacement(u, offer, aws.ToString(r.ErrorMessage), s)
		case code == "Unsupported" || code == "UnfulfillableCapacity" || s.Tenancy == awsv1.TenancyDedicated:
			offer.Class = class
			u.Mark(offer)
		default:
			u.Mark(offer)
		}
	}
}
