package launch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// answered returns an error with an HTTP status.
func answered(status int, code string) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err: apiError(code, smithy.FaultUnknown)}}
}

func apiError(code string, fault smithy.ErrorFault) error {
	return fmt.Errorf("calling: %w", &smithy.GenericAPIError{Code: code, Message: "text", Fault: fault})
}

func TestFateOf(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want callResult
	}{
		{"no error", nil, executed},
		{"no answer", errors.New("connection reset"), lost},
		{"no code of theirs", apiError("UnknownError", smithy.FaultUnknown), lost},
		{"unavailable, with a status of 500", answered(500, "InsufficientInstanceCapacity"), refused},
		{"a mistake by its status", answered(502, "Whatever"), lost},
		{"their mistake", apiError("Whatever", smithy.FaultServer), lost},
		{"an outage", apiError("InternalError", smithy.FaultUnknown), lost},
		{"throttled, as a server fault", apiError("RequestLimitExceeded", smithy.FaultServer), throttled},
		{"throttled", apiError("Throttling", smithy.FaultClient), throttled},
		{"mismatch", apiError("IdempotentParameterMismatch", smithy.FaultClient), mismatched},
		{"no template", apiError("InvalidLaunchTemplateName.NotFoundException", smithy.FaultClient), templateMissing},
		{"refused", apiError("InvalidParameterValue", smithy.FaultClient), refused},
		{"expired credentials", apiError("RequestExpired", smithy.FaultClient), refused},
	} {
		if got := callResultOf(test.err); got != test.want {
			t.Errorf("%s: fate %d, want %d", test.name, got, test.want)
		}
	}
}

func TestReasonOf(t *testing.T) {
	for text, want := range map[string]string{
		"AuthFailure.ServiceLinkedRoleCreationNotPermitted: no":                                   "SpotSLRCreationFailed",
		"UnauthorizedOperation: You are not authorized":                                           "Unauthorized",
		"AuthFailure: Not authorized for images: [ami-1]":                                         "AMIAuthorizationFailure",
		"InvalidParameter: Security group sg-1 and subnet subnet-1 belong to different networks.": "SecurityGroupSubnetVPCMismatch",
		"InvalidParameterValue: Value (x) for parameter iamInstanceProfile.name is invalid":       "InstanceProfileNameInvalid",
		"InvalidLaunchTemplateName.NotFoundException":                                             "LaunchTemplateNotFound",
		"InvalidParameterValue: User data is limited to 16384 bytes":                              "UserDataSizeLimitExceeded",
		"InvalidAMIID.Malformed":                                                                  "InvalidAMIID",
		"InvalidAMIID.NotFound":                                                                   "AMINotFound",
		"RequestLimitExceeded":                                                                    "RequestLimitExceeded",
		"The specified instance type is not eligible for Free Tier":                               "FreeTierIneligible",
		"MaxFleetCountExceeded":                                                                   "FleetQuotaExceeded",
		"PendingVerification":                                                                     "AccountPendingVerification",
		"MaxSpotInstanceCountExceeded":                                                            "SpotQuotaExceeded",
		"VcpuLimitExceeded":                                                                       "VCPULimitExceeded",
		"InsufficientFreeAddressesInSubnet":                                                       "InsufficientFreeAddressesInSubnet",
		"InvalidParameter: something else":                                                        "LaunchFailed",
	} {
		if got := ReasonOf(text); got != want {
			t.Errorf("%s: reason %s, want %s", text, got, want)
		}
	}
}

func fleetErrorOf(code, typeName, zone, subnet string) ec2types.CreateFleetError {
	return ec2types.CreateFleetError{ErrorCode: aws.String(code), ErrorMessage: aws.String("text"),
		LaunchTemplateAndOverrides: &ec2types.LaunchTemplateAndOverridesResponse{
			Overrides: &ec2types.FleetLaunchTemplateOverrides{InstanceType: ec2types.InstanceType(typeName),
				AvailabilityZone: aws.String(zone), SubnetId: aws.String(subnet)}}}
}

func TestFleetError(t *testing.T) {
	short := fleetErrorOf("InsufficientInstanceCapacity", "m5.large", "a", "s")
	denied := fleetErrorOf("UnauthorizedOperation", "m5.large", "a", "s")
	var insufficient *cloud.InsufficientCapacityError
	if err := fleetError([]ec2types.CreateFleetError{short, short}); !errors.As(err, &insufficient) || strings.Count(err.Error(),
		"m5.large") != 1 {
		t.Errorf("only capacity errors: %v", err)
	}
	var failed *cloud.CreateError
	if err := fleetError([]ec2types.CreateFleetError{short, denied}); !errors.As(err, &failed) || failed.Reason != "Unauthorized" {
		t.Errorf("a capacity error and a refusal: %v", err)
	}
	if err := fleetError(nil); !errors.As(err, &failed) || failed.Reason != "LaunchFailed" {
		t.Errorf("no error from EC2: %v", err)
	}
	if err := refusedError(apiError("MaxFleetCountExceeded", smithy.FaultClient)); !errors.As(err, &insufficient) {
		t.Errorf("fleet quota reached: %v", err)
	}
	boundary := createError("UnauthorizedOperation: because no permissions boundary allows the action", nil)
	if !strings.HasPrefix(boundary.Message, "a permissions boundary forbids it") {
		t.Errorf("permissions boundary: %s", boundary.Message)
	}
}

func TestMarks(t *testing.T) {
	offer := instance.Offer{CapacityType: "spot", Type: "m5.large", Zone: "a", Class: "mine", Subnets: []string{"s"}}
	other := offer
	other.Class = "other"
	other.Subnets = []string{"s2"}
	for _, test := range []struct {
		name         string
		code         string
		tenancy      string
		mine, others bool
	}{
		{"shortage", "InsufficientInstanceCapacity", "default", true, true},
		{"shortage of dedicated hardware", "InsufficientInstanceCapacity", "dedicated", true, false},
		{"quota", "MaxSpotInstanceCountExceeded", "default", true, true},
		{"not with this class", "Unsupported", "default", true, false},
		{"not to be fulfilled", "UnfulfillableCapacity", "default", true, false},
		{"no addresses", "InsufficientFreeAddressesInSubnet", "default", true, false},
		{"no role", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "default", true, true},
		{"not a shortage", "UnauthorizedOperation", "default", false, false},
	} {
		now := time.Unix(0, 0)
		u := instance.NewUnavailable(func() time.Time { return now })
		markUnavailable(u, []ec2types.CreateFleetError{fleetErrorOf(test.code, "m5.large", "a", "s")}, "mine",
			&Selection{CapacityType: "spot", Tenancy: test.tenancy})
		if mine, others := u.Has(offer), u.Has(other); mine != test.mine || others != test.others {
			t.Errorf("%s: unavailable to the class %v, to others %v; want %v and %v", test.name, mine, others, test.mine, test.others)
		}
	}
}
