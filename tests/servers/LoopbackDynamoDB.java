import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;

/** DynamoDB Local has no option for the address it listens on and takes every device; this gives it loopback and a free port. */
public final class LoopbackDynamoDB {
    public static void main(String[] arguments) throws Exception {
        var local = ServerRunner.createServerFromCommandLineArgs(arguments);
        var field = local.getClass().getDeclaredField("server");
        field.setAccessible(true);
        var connector = (ServerConnector) ((Server) field.get(local)).getConnectors()[0];
        connector.setHost("127.0.0.1");
        connector.setPort(0);
        local.start();
        System.out.println("Listening on port " + connector.getLocalPort());
        local.join();
    }
}
