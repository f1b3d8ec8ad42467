// A kfake cluster of one broker for tests: prints its address, runs until it is terminated.
//
//	go mod init kfakeserver && go get github.com/twmb/franz-go@v1.22.3 \
//		github.com/twmb/franz-go/pkg/kfake && go build -o kfakeserver .
//
// kfake does not name the release of franz-go that it needs.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	cluster.Close()
}
