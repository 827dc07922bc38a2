import doorless.Loader;
import doorless.Target;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.flowable.common.engine.impl.history.HistoryLevel;
import org.flowable.engine.ProcessEngine;
import org.flowable.engine.RuntimeService;
import org.flowable.engine.impl.cfg.StandaloneInMemProcessEngineConfiguration;
import org.flowable.engine.runtime.ProcessInstance;

/** The engine, whose processes wait at a task with what they were given, in an H2 in memory. Its client is in the same JVM. */
public final class Host implements Target {
    private static final String PROCESS =
            """
            <definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" targetNamespace="held">
              <process id="held">
                <startEvent id="start"/>
                <sequenceFlow id="on" sourceRef="start" targetRef="wait"/>
                <userTask id="wait"/>
                <sequenceFlow id="off" sourceRef="wait" targetRef="end"/>
                <endEvent id="end"/>
              </process>
            </definitions>
            """;

    private final RuntimeService service;
    private final Map<Integer, String> instances = new ConcurrentHashMap<>();

    private Host(RuntimeService service) {
        this.service = service;
    }

    public static void main(String[] args) throws Exception {
        StandaloneInMemProcessEngineConfiguration configuration =
                new StandaloneInMemProcessEngineConfiguration();
        configuration.setJdbcUrl("jdbc:h2:mem:flowable;DB_CLOSE_DELAY=-1");
        configuration.setHistoryLevel(HistoryLevel.NONE);
        ProcessEngine engine = configuration.buildProcessEngine();
        engine.getRepositoryService()
                .createDeployment()
                .addString("held.bpmn20.xml", PROCESS)
                .deploy();
        Loader.serve(new Host(engine.getRuntimeService()));
    }

    @Override
    public void load(int number) {
        Map<String, Object> data = Map.of("data", new byte[UNIT_BYTES]);
        instances.put(number, service.startProcessInstanceByKey("held", data).getId());
    }

    @Override
    public void delete(int number) {
        service.deleteProcessInstance(instances.remove(number), "let go");
    }

    @Override
    public void drop() {
        for (ProcessInstance instance : service.createProcessInstanceQuery().list()) {
            service.deleteProcessInstance(instance.getId(), "let go");
        }
        instances.clear();
    }

    /** Of those that are at their task and have their data. */
    @Override
    public long count() {
        return service.createProcessInstanceQuery().variableExists("data").count();
    }

    @Override
    public void read() {
        service.createProcessInstanceQuery().count();
    }
}
