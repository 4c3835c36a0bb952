package aws

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/smithy-go"
)

// NoRegionError means that the AWS region does not answer as a region does: its endpoint has no address, or requests that are
// signed for it are not accepted. Regions that an account has not enabled are refused in the same way
// (https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html).
type NoRegionError struct {
	Region string
	Err    error
}

func (e *NoRegionError) Error() string {
	return fmt.Sprintf("the AWS region %q does not exist, is not enabled for the account, or cannot be reached from here; set AWS_REGION to the region of the cluster: %v", e.Region, innermost(e.Err))
}

func (e *NoRegionError) Unwrap() error { return e.Err }

// regionOf returns the error of a call, as a NoRegionError if the region is what is wrong.
func regionOf(region string, err error) error {
	var unresolved *net.DNSError
	var answer smithy.APIError
	switch {
	case errors.As(err, &unresolved) && unresolved.IsNotFound:
	case errors.As(err, &answer) && strings.Contains(answer.ErrorMessage(), "scoped to a valid region"):
	default:
		return err
	}
	return &NoRegionError{Region: region, Err: err}
}
